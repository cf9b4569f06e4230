import { once } from "node:events";
import { createReadStream } from "node:fs";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import type { QueryAnswer, QueryProgress } from "../../model/answers/query.ts";
import { errorCode, exitCode, type SerialisedFailure, serialiseFailure } from "../../model/failure.ts";
import { textRenderers } from "../../model/row-text.ts";
import { systemClock } from "../../runtime/clock.ts";
import { findPlanWarnings } from "../../warehouse/query/plan-warnings.ts";
import { type QueryRemedies, runReadQuery } from "../../warehouse/query/query.ts";
import { openReader, toReaderFailure } from "../../warehouse/reader.ts";
import { SMALL_CACHE_KIB } from "../../warehouse/sqlite/connection.ts";
import { type QueryRequest, replacedFailure } from "./query-request.ts";
import { renderScreenRows, toParquetTable } from "./query-result.ts";

/** The message that starts the process. */
export interface QueryTask extends QueryRequest {
  readonly path: string;
  /** For the temporary file of a Parquet result. */
  readonly folder: string;
}

/**
 * What the process sends: the warnings right before the statement's first step, for the screen the rows read so far, then that
 * the result follows on stdout, or a failure.
 */
export type QueryMessage =
  | { readonly warnings: readonly string[] }
  | QueryProgress
  | { readonly isReady: true }
  | { readonly failure: SerialisedFailure };

const CHUNK_CHARS = 256 * 1024;
const PROGRESS_INTERVAL_MS = 1_000;

const pageRemedies: QueryRemedies = {
  names: "the relations and their columns are listed beside the editor",
  missing: (parameter) => `give :${parameter} a value`,
  unused: (parameter) => `leave out :${parameter}`,
};

setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
// The parent, which reads the result, has ended.
const exitWithParent = () => process.exit(exitCode.unexpected);
process.on("disconnect", exitWithParent);
process.once("message", async (task: QueryTask) => {
  try {
    await run(task);
  } catch (error) {
    const isModuleMissing = errorCode(error) === "ERR_MODULE_NOT_FOUND";
    const failure = isModuleMissing ? replacedFailure() : toReaderFailure(error, task.path);
    await send({ failure: serialiseFailure(failure, "export_bug") });
  }
  process.off("disconnect", exitWithParent);
  process.disconnect();
});

async function run({ path, sql, parameters, format, folder }: QueryTask): Promise<void> {
  const reader = openReader(path, SMALL_CACHE_KIB);
  // The parent limits the memory of this process; sorting in a file would fill the disk instead.
  reader.database.pragma("temp_store = memory");
  // Prepare it first: its errors name the statement and suggest a remedy.
  const { columns, rows } = runReadQuery(reader, sql, parameters, pageRemedies);
  const warnings = /^\s*explain\b/i.test(sql) ? [] : findPlanWarnings(reader, sql, parameters);
  await send({ warnings });
  const startedAt = systemClock.monotonic();
  if (format === "rows") {
    const result = renderScreenRows(reportProgress(rows));
    const ms = Math.round(systemClock.monotonic() - startedAt);
    const head: Omit<QueryAnswer, "rows"> = {
      columns,
      count: result.count,
      is_cut: result.isCut,
      ms,
      warnings,
    };
    await send({ isReady: true });
    await write(`${JSON.stringify(head).slice(0, -1)},"rows":[${result.rows}]}\n`);
  } else if (format === "parquet") await writeParquet(columns, rows, folder);
  else await writeText(textRenderers[format](columns, rows));
  reader.close();
}

/** The same rows; once a second it reports how many were read. The message leaves at once, although this thread is busy. */
function* reportProgress<Row>(rows: Iterable<Row>): Generator<Row> {
  let read = 0;
  let reportedAt = systemClock.monotonic();
  for (const row of rows) {
    yield row;
    read++;
    const now = systemClock.monotonic();
    if (now - reportedAt < PROGRESS_INTERVAL_MS) continue;
    reportedAt = now;
    void send({ read });
  }
}

async function writeText(pieces: Iterable<string>): Promise<void> {
  let pending = "";
  let isReady = false;
  const flush = async () => {
    if (!isReady) await send({ isReady: true });
    isReady = true;
    await write(pending);
    pending = "";
  };
  for (const piece of pieces) {
    pending += piece;
    if (pending.length >= CHUNK_CHARS) await flush();
  }
  await flush();
}

async function writeParquet(
  columns: readonly string[],
  rows: Iterator<readonly unknown[]>,
  folder: string,
): Promise<void> {
  // Loaded only here: DuckDB takes as long to load as most queries take.
  const { writeParquetTable } = await import("../parquet-writer.ts");
  const file = join(folder, "result.parquet");
  const table = toParquetTable(columns, rows);
  await writeParquetTable(file, table.columns, table.rows);
  await send({ isReady: true });
  for await (const chunk of createReadStream(file)) await write(chunk);
}

async function write(chunk: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, "drain");
}

function send(message: QueryMessage): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()));
}
