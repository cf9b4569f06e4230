import { parseQueryValue } from "../../model/answers/query.ts";
import { type Failure, usageFailure } from "../../model/failure.ts";
import {
  MICROS_PER_DAY,
  type Micros,
  parseDateOrTimestamp,
  parseUserTime,
  USER_TIME_FORMS,
} from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { ofSeries } from "../../warehouse/lookups/series-kinds.ts";
import type { Connection, KnownAt } from "../../warehouse/sqlite/connection.ts";
import { findKnownAt, readMachineTs, readToken } from "../../warehouse/tables/known-at.ts";
import { IncompleteFailure } from "../incomplete-failure.ts";
import type { QueryValues, Schedule, SeriesSelection, TimeInput } from "../read-options.ts";
import type { BarSource, SeriesInfo } from "../rows.ts";
import { alignToBars, type BarGrid, createBarGrid } from "./bar-grid.ts";
import { canBuild } from "./bar-reader.ts";
import { findMissing, findSettledEnd } from "./completeness.ts";
import {
  type BarPlan,
  type MomentPlan,
  resolveSources,
  type SeriesOptions,
  type SourcedSeries,
  type TickPlan,
  withSource,
} from "./series-names.ts";
import { findTimeZone, type TimeZone, utcZone } from "./time-zone.ts";

/** Which part of the series to read. */
export interface RangeOptions extends SeriesOptions {
  readonly from?: TimeInput | undefined;
  readonly to?: TimeInput | undefined;
  /** Bars of this length are read instead of ticks. */
  readonly every?: string | undefined;
  /** Default: ticks if the series has any, else daily bars. */
  readonly source?: BarSource | undefined;
  readonly requireComplete?: boolean | undefined;
  /** The zone of bounds without an offset. */
  readonly tz?: string | undefined;
}

/**
 * Resolves names and bounds. Without `from` it begins with the first row, without `to` it ends with the last. If everything
 * must be complete, it begins and ends with the proven part instead, and a Failure lists what is missing between.
 */
export function planReads(
  connection: Connection,
  names: SeriesSelection,
  options: RangeOptions & { readonly every: string },
): (TickPlan & BarPlan)[];
export function planReads(connection: Connection, names: SeriesSelection, options: RangeOptions): TickPlan[];
export function planReads(connection: Connection, names: SeriesSelection, options: RangeOptions): TickPlan[] {
  const now = readPresentTs(connection);
  const zone = findTimeZone(options.tz);
  const grid = options.every === undefined ? undefined : createBarGrid(options.every, zone);
  const from = options.from === undefined ? undefined : readTime(options.from, now, zone);
  const to = options.to === undefined ? undefined : readTime(options.to, now, zone);
  if (options.requireComplete && to === undefined && connection.knownAt)
    throw usageFailure(
      "whether an earlier state was complete needs the end of the range",
      "give it with --to",
    );
  if (from !== undefined && to !== undefined && from >= to) throw emptyRange();
  const source = grid ? options.source : "ticks";
  const all = resolveSources(connection, names, { ...options, source });
  const given = { from, to, grid };
  const ranges = options.requireComplete
    ? planComplete(connection, all, given)
    : all.map((one) => planRange(connection, one, given, now));
  const plans = all.map((one, at) => ({ ...one, range: ranges[at] as TimeRange, zone }));
  if (!grid) return plans;
  const ofBars = plans.map((plan) => ({ ...plan, grid }));
  return source === undefined && !options.requireComplete ? withoutDailyBars(ofBars) : ofBars;
}

/** Resolves names and the moments that are asked for: one, a list, or one a day. */
export function planMoments(
  connection: Connection,
  at: MomentsInput,
  names: SeriesSelection,
  options: Pick<RangeOptions, keyof SeriesOptions | "source" | "tz">,
): MomentPlan[] {
  const zone = findTimeZone(options.tz);
  const moments = readMoments(at, readPresentTs(connection), zone);
  const schedule = isSchedule(at) ? at.at : undefined;
  return resolveSources(connection, names, options).map((one) => ({ ...one, zone, moments, schedule }));
}

/** Beside others that have bars of this length, a series of daily bars only has none; alone it is an error. */
function withoutDailyBars<Plan extends BarPlan>(plans: Plan[]): Plan[] {
  if (!plans.some(canBuild)) return plans;
  return plans.map((plan) => (canBuild(plan) ? plan : { ...plan, ...withSource(plan.series, "ticks") }));
}

interface GivenRange {
  readonly from: Micros | undefined;
  readonly to: Micros | undefined;
  readonly grid: BarGrid | undefined;
}

function planRange(connection: Connection, one: SourcedSeries, given: GivenRange, now: Micros): TimeRange {
  const { grid } = given;
  const [first, last] = readExtent(connection, one);
  const start = first === null ? now : (grid?.startOf(first) ?? first);
  return { from: given.from ?? start, to: given.to ?? Math.max(now, (last ?? 0) + 1) };
}

function planComplete(
  connection: Connection,
  all: readonly SourcedSeries[],
  { from, to, grid }: GivenRange,
): TimeRange[] {
  const end = to ?? findSettledEnd(connection, all, from ?? 0);
  const plans = all.map((one) => {
    const start = from ?? readLedgerStart(connection, one);
    if (start === undefined) throw new IncompleteFailure([], [one.series.name]);
    // A bar in progress is never complete: without a given end, the last bar is the last one that is over.
    const until = to === undefined && grid ? grid.startOf(end) : end;
    const range = { from: start, to: Math.max(start, until) };
    return { ...one, range: grid ? alignToBars(grid, range) : range };
  });
  const byRange = Map.groupBy(plans, ({ range }) => `${range.from} ${range.to}`);
  const gaps = [...byRange.values()].flatMap((members) =>
    members[0] ? findMissing(connection, members, members[0].range) : [],
  );
  if (gaps.length === 0) return plans.map(({ range }) => range);
  const names = new Set(gaps.map(({ name, index_id, stream }) => name ?? index_id ?? stream));
  throw new IncompleteFailure(gaps, [...names]);
}

/** The first and the last row, by their start. */
export function readExtent(
  connection: Connection,
  { series, stream }: SourcedSeries,
): [Micros | null, Micros | null] {
  // Not min and max: of an earlier state they would read every row.
  const read = (direction?: "DESC"): Micros | null => {
    const sql = `SELECT ts ${ofSeries(stream, "1", direction)} LIMIT 1`;
    return connection.findValue<Micros>(sql, [series.key]) ?? null;
  };
  return [read(), read("DESC")];
}

const ledgerStartSql = `SELECT min(from_ts) FROM settled_ranges WHERE stream = ?
  AND series IN (?, ?) AND proof <> 'lost'`;

function readLedgerStart(connection: Connection, { series, stream }: SourcedSeries): Micros | undefined {
  return connection.value<Micros | null>(ledgerStartSql, [stream, ...series.ledgerKeys]) ?? undefined;
}

/** The message about a series that has no rows of the source. */
export function describeMissingRows(series: SeriesInfo, source: BarSource): string | undefined {
  const isTicks = source === "ticks";
  if (isTicks ? series.has_ticks : series.has_ohlcv) return undefined;
  const other = isTicks && series.has_ohlcv ? ", only daily bars" : "";
  return `the warehouse has no ${isTicks ? "ticks" : "daily bars"} of ${series.name}${other}`;
}

/** The earlier state that a moment or a token names. Throws a Failure if the warehouse does not know it exactly. */
export function resolveKnownAt(connection: Connection, input: TimeInput, zone?: TimeZone): KnownAt {
  const cited = typeof input === "string" ? readToken(connection, input) : undefined;
  return cited ?? findKnownAt(connection, readTime(input, readMachineTs(connection), zone));
}

/** Milliseconds of any year that the warehouse may hold are below this, microseconds since 1973 above. */
const MIN_MICROS = 100_000_000_000_000;

/** Throws a Failure for what is no moment. A text without an offset is a time of the zone. */
export function readTime(input: TimeInput, now: Micros, zone: TimeZone = utcZone): Micros {
  const ts =
    typeof input === "string"
      ? parseUserTime(input, now, zone.momentOf)
      : input instanceof Date
        ? Math.round(input.getTime() * 1000)
        : typeof input === "number" || typeof input === "bigint"
          ? Number(input)
          : undefined;
  const isLikelyMillis =
    typeof input === "number" && ts !== undefined && ts !== 0 && Math.abs(ts) < MIN_MICROS;
  if (ts !== undefined && Number.isSafeInteger(ts) && !isLikelyMillis) return ts;
  throw usageFailure(
    `${String(input)} is not a time`,
    isLikelyMillis ? "give microseconds since 1970, or a Date" : `give ${USER_TIME_FORMS}`,
  );
}

function emptyRange(): Failure {
  return usageFailure("the range is empty: its start is not before its end", "a range is [from, to)");
}

type MomentsInput = TimeInput | readonly TimeInput[] | Schedule;

const isSchedule = (input: MomentsInput): input is Schedule =>
  typeof input === "object" && "at" in input && "from" in input;

/** The moments that a user asks for: one, a list, or one a day. */
export function readMoments(input: MomentsInput, now: Micros, zone: TimeZone): readonly Micros[] {
  if (typeof input !== "object" || input === null || input instanceof Date)
    return [readTime(input, now, zone)];
  if (!isSchedule(input)) return [...input].map((each) => readTime(each, now, zone));
  const { at, from, to = "now" } = input;
  const clock = /^\d\d:\d\d(:\d\d)?$/.test(at) ? parseDateOrTimestamp(`1970-01-01 ${at}`) : undefined;
  if (clock === undefined || clock >= MICROS_PER_DAY)
    throw usageFailure(`${at} is not a time of day`, "give a time such as 09:30");
  const [first, end] = [readTime(from, now, zone), readTime(to, now, zone)];
  if (first >= end) throw emptyRange();
  const moments: Micros[] = [];
  for (let day = zone.dayOf(first); day <= zone.dayOf(end); day++) {
    const moment = zone.momentOf(day * MICROS_PER_DAY + clock);
    if (moment >= first && moment < end) moments.push(moment);
  }
  return moments;
}

/** The values of a query's parameters. They have types already, but a text `@TIME` is a moment, as in `mds-sync query`. */
export function readQueryValues(values: QueryValues, now: Micros): QueryValues {
  const read = ([name, value]: [string, QueryValues[string]]) => {
    if (typeof value !== "string" || !value.startsWith("@")) return [name, value];
    const ts = parseQueryValue(value, now);
    if (ts === undefined)
      throw usageFailure(`:${name} cannot be ${value}`, `after @ give ${USER_TIME_FORMS}`);
    return [name, ts];
  };
  return Object.fromEntries(Object.entries(values).map(read));
}
