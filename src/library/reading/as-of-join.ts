import { MICROS_PER_SECOND, type Micros, parseDuration } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { AsOfJoinOptions, TimeInput } from "../read-options.ts";
import type { AsOfValue } from "../rows.ts";
import { lengthFailure } from "./bar-grid.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import { readTime } from "./read-plan.ts";
import { type KeyedSeries, resolveSeries } from "./series-names.ts";
import { newestPrices } from "./tick-reader.ts";
import { findTimeZone } from "./time-zone.ts";

const nothing: AsOfValue = { asof_price: null, asof_ts: null, asof_age_seconds: null, asof_complete: 0 };

/** Adds to each row what its series was worth at its time. Call it in a read transaction. */
export function joinAsOf<Row extends object>(
  connection: Connection,
  rows: readonly Row[],
  { on = "time", by = "name", indexType, of, maxAge, tz }: AsOfJoinOptions,
): (Row & AsOfValue)[] {
  const [now, zone] = [readPresentTs(connection), findTimeZone(tz)];
  const seconds = maxAge === undefined ? Number.POSITIVE_INFINITY : parseDuration(maxAge);
  if (seconds === undefined) throw lengthFailure(`an age cannot be ${maxAge}`);
  const cell = (row: Row, column: string) => (row as Readonly<Record<string, unknown>>)[column];
  const moments = rows.map((row) => readTime(cell(row, on) as TimeInput, now, zone));
  if (rows.length === 0) return [];
  const byName = Map.groupBy(rows.keys(), (at) => String(cell(rows[at] as Row, by)));
  // One by one: two names may be of one series.
  const all = [...byName.keys()].map((name) => resolveSeries(connection, [name], { indexType, of })[0]);
  const joined = new Array<Row & AsOfValue>(rows.length);
  [...byName.values()].forEach((own, n) => {
    const isBefore = (at: number, n: number) =>
      n === 0 || (moments[own[n - 1] as number] as Micros) <= (moments[at] as Micros);
    // Trades are in order of time already, as a rule: sorting a million takes longer than joining them.
    if (!own.every(isBefore)) own.sort((a, b) => (moments[a] as Micros) - (moments[b] as Micros));
    const range = {
      from: moments[own[0] as number] as Micros,
      to: (moments[own.at(-1) as number] as Micros) + 1,
    };
    const valueAt = readValues(connection, all[n] as KeyedSeries, range, seconds * MICROS_PER_SECOND);
    for (const at of own) joined[at] = { ...(rows[at] as Row), ...valueAt(moments[at] as Micros) };
  });
  return joined;
}

/** The value at each moment of a range; the moments ascend. */
function readValues(connection: Connection, series: KeyedSeries, range: TimeRange, maxAge: Micros) {
  const { from, to } = range;
  const newest = newestPrices(connection, series, range);
  const start = newest(from)?.[0] ?? from;
  const covered = new CoveredRanges(connection, series.stream, series, { from: start, to });
  return (at: Micros): AsOfValue => {
    const [ts, price = null] = newest(at) ?? [];
    if (ts === undefined || at - ts > maxAge) return nothing;
    const isComplete = covered.measure(ts, at + 1) === at + 1 - ts;
    return {
      asof_price: price,
      asof_ts: ts,
      asof_age_seconds: (at - ts) / MICROS_PER_SECOND,
      asof_complete: isComplete ? 1 : 0,
    };
  };
}
