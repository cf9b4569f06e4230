import type { Command } from "commander";
import { IncompleteFailure } from "../../../library/incomplete-failure.ts";
import type { Question } from "../../../library/reading/citation.ts";
import { describeMissingRows } from "../../../library/reading/read-plan.ts";
import type { ReadPlan } from "../../../library/reading/series-names.ts";
import { formatDay } from "../../../model/time.ts";
import type { Connection } from "../../../warehouse/sqlite/connection.ts";
import type { CommandContext } from "../../support/context.ts";
import { loadSettingsAndWarn } from "../../support/flags.ts";
import type { KnownAtFlags } from "./known-state.ts";

/** Flags of every command that reads series. */
export interface SeriesFlags {
  readonly cite?: boolean;
  readonly indexType?: string;
  readonly of?: string;
  readonly tz?: string;
  readonly requireComplete?: boolean;
}

/** `what`: what --cite writes. */
export function addKnownAtFlags(
  command: Command,
  what = "a token to stderr with which --known-at reproduces the answer",
): Command {
  return command
    .option(
      "--known-at <time>",
      "the answer as it was known then, without later changes; or a token of --cite",
    )
    .option("--cite", `write ${what}`);
}

export function addSeriesFlags(command: Command): Command {
  return addKnownAtFlags(command, "a line to stderr with which `mds-sync check` checks the answer")
    .argument(
      "<series...>",
      "symbols (BTC), pairs (BTC/USD), names (BLX), ids; GWA:BTC, LUNA@2022 (by its first day), " +
        "Kraken:BTC/USD, Deribit:BTCUSD-PERP, cap:BTC (market caps)",
    )
    .option("--of <figure>", "bid, ask, mid, volume, funding, open_interest … instead of the price")
    .option("--index-type <type>", "GWA, MWA or LX: the type of names without a prefix such as GWA:")
    .option("--tz <zone>", "the zone of times, such as America/New_York; default: UTC")
    .option("--require-complete", "exit 4, and write nothing, unless the ledger proves every second");
}

/** Flags of the commands that write the rows of a range. */
export interface RangeFlags extends SeriesFlags {
  readonly from?: string;
  readonly to?: string;
  readonly wide?: boolean;
}

export function addRangeFlags(command: Command): Command {
  return command
    .option("--from <time>", "start, inclusive, such as 2026-03-01, '2026-03-01 12:00' or -7d")
    .option("--to <time>", "end, exclusive: as --from");
}

/** Opens the warehouse of the settings, and reads one state of it. */
export async function readWarehouse(
  command: Command,
  context: CommandContext,
  work: (connection: Connection) => Promise<void>,
): Promise<void> {
  const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
  // Loaded lazily, so that the help does not load SQLite.
  const { openReader, toReaderFailure } = await import("../../../warehouse/reader.ts");
  const { inSnapshot } = await import("../../../warehouse/read/export-relations.ts");
  const { showState } = await import("./known-state.ts");
  const connection = openReader(path);
  try {
    await inSnapshot(connection, async () => {
      // These commands cite their answer, not only the state.
      showState(connection, { ...command.opts<KnownAtFlags>(), cite: false }, context);
      await work(connection);
    });
  } catch (error) {
    if (error instanceof IncompleteFailure) listMissing(error, context);
    throw toReaderFailure(error, path);
  } finally {
    connection.close();
  }
}

/** Writes the line that cites what a command has written. */
export async function citeAnswer(
  connection: Connection,
  question: Question,
  { stderr }: CommandContext,
): Promise<void> {
  const { cite } = await import("../../../library/reading/citation.ts");
  stderr.write(`mds-sync: cite: ${cite(connection, question)}\n`);
}

/** One line per missing range; the failure itself is reported last. */
export function listMissing({ gaps }: IncompleteFailure, { stderr }: CommandContext): void {
  for (const { name, index_id, stream, from_time, to_time, state, reason } of gaps)
    stderr.write(
      `${[name ?? index_id, stream].join(" ").trim()}: [${from_time}, ${to_time}) ${state}: ${reason}\n`,
    );
}

/** Notes which series have nothing to read, and where daily bars reach further back than the ticks. */
export function noteMissingRows(
  connection: Connection,
  plans: readonly ReadPlan[],
  { stderr }: CommandContext,
): void {
  for (const { series, source, range } of plans) {
    const missing = describeMissingRows(series, source);
    if (missing !== undefined) stderr.write(`mds-sync: note: ${missing}\n`);
    else if (source === "ticks" && series.has_ohlcv) noteOlderDays(connection, series, range.from, stderr);
  }
}

const firstTickSql = "SELECT ts FROM index_tick_rows WHERE series = ? ORDER BY ts LIMIT 1";
const firstDaySql = "SELECT ts FROM daily_bar_rows WHERE series = ? ORDER BY ts LIMIT 1";

function noteOlderDays(
  connection: Connection,
  { key, name }: ReadPlan["series"],
  from: number,
  stderr: CommandContext["stderr"],
): void {
  const first = connection.findValue<number>(firstTickSql, [key]) ?? Number.POSITIVE_INFINITY;
  if (from >= first) return;
  const firstDay = formatDay(connection.value<number>(firstDaySql, [key]));
  stderr.write(
    `mds-sync: note: ticks of ${name} begin later; \`bars --source ohlcv\` has its daily bars since ${firstDay}\n`,
  );
}
