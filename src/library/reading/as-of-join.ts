import { MICROS_PER_SECOND, type Micros, parseDuration } from "../../model/time.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { AsOfJoinOptions, TimeInput } from "../read-options.ts";
import type { AsOfValue } from "../rows.ts";
import { findTick } from "./as-of-reader.ts";
import { lengthFailure } from "./bar-grid.ts";
import { CoveredRanges } from "./covered-ranges.ts";
import { readTime } from "./read-plan.ts";
import { type KeyedSeries, resolveSeries } from "./series-names.ts";
import { readPriceBlocks } from "./tick-reader.ts";
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
    const ordered = own.map((at) => moments[at] as Micros);
    const values = readValues(connection, all[n] as KeyedSeries, ordered, seconds * MICROS_PER_SECOND);
    for (const at of own) joined[at] = { ...(rows[at] as Row), ...(values.next().value ?? nothing) };
  });
  return joined;
}

/** The value at each moment; the moments ascend. */
function* readValues(
  connection: Connection,
  series: KeyedSeries,
  moments: readonly Micros[],
  maxAge: Micros,
): Generator<AsOfValue, undefined> {
  const [first, last] = [moments[0], moments.at(-1)];
  if (series.key === null || first === undefined || last === undefined) return;
  const range = { from: findTick(connection, series, first)?.ts ?? first, to: last + 1 };
  const covered = new CoveredRanges(connection, series.stream, series, range);
  let [ts, price] = [Number.NEGATIVE_INFINITY, 0];
  let next = 0;
  const valueAt = (at: Micros): AsOfValue => {
    if (at - ts > maxAge || ts === Number.NEGATIVE_INFINITY) return nothing;
    const isComplete = covered.measure(ts, at + 1) === at + 1 - ts;
    return {
      asof_price: price,
      asof_ts: ts,
      asof_age_seconds: (at - ts) / MICROS_PER_SECOND,
      asof_complete: isComplete ? 1 : 0,
    };
  };
  for (const block of readPriceBlocks(connection, series, range))
    for (const [tickTs, tickPrice] of block) {
      if (tickPrice === null) continue;
      for (; next < moments.length && (moments[next] as Micros) < tickTs; next++)
        yield valueAt(moments[next] as Micros);
      [ts, price] = [tickTs, tickPrice];
    }
  for (; next < moments.length; next++) yield valueAt(moments[next] as Micros);
}
