import type { Command } from "commander";
import { IncompleteFailure } from "../../../library/incomplete-failure.ts";
import { createBarGrid } from "../../../library/reading/bar-grid.ts";
import { type AskOptions, cite, toQuestion } from "../../../library/reading/citation.ts";
import { describeMissingRows } from "../../../library/reading/read-plan.ts";
import type { MomentPlan, TickPlan } from "../../../library/reading/series-names.ts";
import { findTimeZone } from "../../../library/reading/time-zone.ts";
import { formatDay } from "../../../model/time.ts";
import { inSnapshot } from "../../../warehouse/read/export-relations.ts";
import { openReader, toReaderFailure } from "../../../warehouse/reader.ts";
import type { Connection } from "../../../warehouse/sqlite/connection.ts";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../../support/flags.ts";
import { addOutputFlags, type OutputFlags, readDataFormat, writeData } from "./data-output.ts";
import { addKnownAtFlags, type KnownAtFlags, showState } from "./known-at-flags.ts";
import { type OutputColumn, selectColumns } from "./output-columns.ts";
import { mergeByTime, type TimedRow, wideColumns } from "./wide-rows.ts";

/** Flags of every command that writes rows of series. */
export interface SeriesFlags extends KnownAtFlags, OutputFlags {
  readonly from?: string;
  readonly to?: string;
  readonly wide?: boolean;
  readonly indexType?: string;
  readonly of?: string;
  readonly requireComplete?: boolean;
}

export function addSeriesFlags(command: Command): Command {
  command
    .option("--from <time>", "start, inclusive, such as 2026-03-01, '2026-03-01 12:00' or -7d")
    .option("--to <time>", "end, exclusive: as --from");
  addKnownAtFlags(command, "a line to stderr with which `mds-sync check` checks the answer")
    .argument(
      "<series...>",
      "symbols (BTC), pairs (BTC/USD), names (BLX), ids; GWA:BTC, LUNA@2022 (by its first day), " +
        "Kraken:BTC/USD, Deribit:BTCUSD-PERP, cap:BTC (market caps)",
    )
    .option("--of <figure>", "bid, ask, mid, volume, funding, open_interest … instead of the price")
    .option("--index-type <type>", "GWA, MWA or LX: the type of names without a prefix such as GWA:")
    .option("--tz <zone>", "the zone of times, such as America/New_York; default: UTC")
    .option("--require-complete", "exit 4, and write nothing, unless the ledger proves every second");
  return addSettingsFlags(addOutputFlags(command), "warehouse");
}

/** What a command writes of each series. */
interface SeriesTable<Row, Plan> {
  readonly columns: readonly OutputColumn<Row>[];
  /** The column that `--wide` shows. */
  readonly figure: string;
  readonly plan: (connection: Connection) => readonly Plan[];
  /** The rows of a series, in order of time. They are read one after the other, when they are written. */
  readonly read: (connection: Connection, plan: Plan) => Iterable<Row>;
  /** How many rows there will be, for the progress bar. */
  readonly count: (connection: Connection, plan: Plan) => number;
}

/** Writes the rows of several series in one state of the warehouse: one after the other, or with `--wide` side by side. */
export async function writeSeries<Row extends TimedRow, Plan extends TickPlan | MomentPlan>(
  command: Command,
  context: CommandContext,
  { columns, figure, plan, read, count }: SeriesTable<Row, Plan>,
): Promise<void> {
  const flags = command.opts<SeriesFlags & AskOptions>();
  // What is wrong with the flags is said before a warehouse is needed.
  readDataFormat(flags);
  const zone = findTimeZone(flags.tz);
  if (flags.every !== undefined) createBarGrid(flags.every, zone);
  const chosen = selectColumns(columns, flags.columns ?? (flags.wide ? figure : undefined));
  const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
  const connection = openReader(path);
  try {
    await inSnapshot(connection, async () => {
      const { knownAt, tz } = flags;
      showState(connection, { knownAt, tz }, context);
      const plans = plan(connection);
      const question = flags.cite ? toQuestion(connection, plans, flags) : undefined;
      const parts = plans.map((one) => read(connection, one));
      const countRows = () => plans.reduce((sum, one) => sum + count(connection, one), 0);
      if (flags.wide) {
        const hasCompleteness = columns.some(({ name }) => name === "is_complete");
        const series = plans.map((one) => one.series);
        const merged = mergeByTime(parts.map((rows) => rows[Symbol.iterator]()));
        await writeData(context, flags, wideColumns(series, chosen, hasCompleteness), merged, countRows);
      } else await writeData(context, flags, chosen, inTurn(parts), countRows);
      if (question) context.stderr.write(`mds-sync: cite: ${cite(connection, question)}\n`);
    });
  } catch (error) {
    if (error instanceof IncompleteFailure) listMissing(error, context);
    throw toReaderFailure(error, path);
  } finally {
    connection.close();
  }
}

function* inTurn<Row>(parts: readonly Iterable<Row>[]): Generator<Row> {
  for (const rows of parts) yield* rows;
}

/** One line per missing range; the failure itself is reported last. */
function listMissing({ gaps }: IncompleteFailure, { stderr }: CommandContext): void {
  for (const { name, index_id, stream, from_time, to_time, state, reason } of gaps)
    stderr.write(
      `${[name ?? index_id, stream].join(" ").trim()}: [${from_time}, ${to_time}) ${state}: ${reason}\n`,
    );
}

/** Notes which series have nothing to read, and where daily bars reach further back than the ticks. */
export function noteMissingRows<Plan extends TickPlan>(
  connection: Connection,
  plans: readonly Plan[],
  { stderr }: CommandContext,
): readonly Plan[] {
  for (const { series, source, range } of plans) {
    const note =
      describeMissingRows(series, source) ??
      (source === "ticks" && series.has_ohlcv
        ? describeOlderDays(connection, series, range.from)
        : undefined);
    if (note !== undefined) stderr.write(`mds-sync: note: ${note}\n`);
  }
  return plans;
}

const firstTickSql = "SELECT ts FROM index_tick_rows WHERE series = ? ORDER BY ts LIMIT 1";
const firstDaySql = "SELECT ts FROM daily_bar_rows WHERE series = ? ORDER BY ts LIMIT 1";

function describeOlderDays(
  connection: Connection,
  { key, name }: TickPlan["series"],
  from: number,
): string | undefined {
  const firstTick = connection.findValue<number>(firstTickSql, [key]) ?? Number.POSITIVE_INFINITY;
  if (from >= firstTick) return undefined;
  const firstDay = formatDay(connection.value<number>(firstDaySql, [key]));
  return `ticks of ${name} begin later; \`bars --source ohlcv\` has its daily bars since ${firstDay}`;
}
