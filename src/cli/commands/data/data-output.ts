import { resolve } from "node:path";
import type { Command } from "commander";
import { usageFailure } from "../../../model/failure.ts";
import { underBar } from "../../output/progress-bar.ts";
import { QUERY_FORMATS, readFormat, rowRenderers } from "../../output/row-formats.ts";
import { formatElapsed, pluralize } from "../../output/text.ts";
import { writeAtomically, writePieces, writeTextFile } from "../../output/write-output.ts";
import { type CommandContext, type CommonFlags, hasBars } from "../../support/context.ts";
import type { Cell, OutputColumn } from "./output-columns.ts";

const DATA_FORMATS = [...QUERY_FORMATS, "parquet"] as const;
type DataFormat = (typeof DATA_FORMATS)[number];

/** Flags of every command that writes rows. */
export interface OutputFlags extends CommonFlags {
  readonly format?: string;
  readonly out?: string;
  readonly columns?: string;
  readonly tz?: string;
}

export function addOutputFlags(command: Command): Command {
  return command
    .option("--format <format>", `${DATA_FORMATS.join(", ")}; default: by the name of --out, else table`)
    .option("--json", "the same as --format json")
    .option("--columns <names>", "only these columns, in this order, with commas between them")
    .option("--out <file>", "write this file instead of stdout; it appears when it is complete")
    .option("--no-progress", "no progress bar");
}

export function readDataFormat(flags: OutputFlags): DataFormat {
  const { out } = flags;
  const ending = /\.(\w+)$/.exec(out ?? "")?.[1]?.toLowerCase();
  const byName = DATA_FORMATS.find((known) => known === (ending === "jsonl" ? "ndjson" : ending));
  const found = readFormat(DATA_FORMATS, flags, byName ?? "table");
  if (found === "parquet" && out === undefined)
    throw usageFailure("--format parquet needs a file", "name it with --out FILE");
  return found;
}

/** Writes the rows to stdout or to a file, and their number to stderr. `countRows`: how many there will be, for the progress bar. */
export async function writeData<Row>(
  context: CommandContext,
  flags: OutputFlags,
  given: readonly OutputColumn<Row>[],
  rows: Iterable<Row>,
  countRows: () => number,
): Promise<void> {
  const format = readDataFormat(flags);
  const columns = format === "parquet" && flags.tz === undefined ? given.map(asTimestamp) : given;
  const startedAt = context.clock.monotonic();
  let count = 0;
  const cells = (function* (): Generator<Cell[]> {
    for (const row of rows) {
      count++;
      context.stopping.throwIfAborted();
      yield columns.map(({ read }) => read(row));
    }
  })();
  const names = columns.map(({ name }) => name);
  if (flags.out === undefined) {
    // SQLite blocks the event loop, so that only the default action of a signal can end the process.
    context.dieOnSignal?.();
    if (format !== "parquet")
      await writePieces(context.stdout, rowRenderers[format](names, cells), context.clock);
  } else {
    const file = resolve(context.directory, flags.out);
    const planned = hasBars(flags, context) ? countRows() : 0;
    const write = async (unfinished: string) => {
      if (format !== "parquet")
        return writeTextFile(unfinished, rowRenderers[format](names, cells), context.clock);
      // Loaded lazily, so that other formats do not load DuckDB.
      const { writeParquetTable } = await import("../../../export/parquet-writer.ts");
      return writeParquetTable(unfinished, columns, cells);
    };
    const readCounts = () => ({ rows: count, done: count, planned });
    await underBar(flags, context, "rows", readCounts, () => writeAtomically(file, write));
  }
  const elapsed = formatElapsed(context.clock.monotonic() - startedAt);
  const where = flags.out === undefined ? "" : ` written to ${flags.out}`;
  context.stderr.write(`${pluralize(count, "row")}${where} in ${elapsed}\n`);
}

/** Parquet has moments, in UTC; a text of time in another zone stays a text. */
function asTimestamp<Row>(column: OutputColumn<Row>): OutputColumn<Row> {
  const { name, readTs } = column;
  return readTs ? { name, type: "micros", read: readTs } : column;
}
