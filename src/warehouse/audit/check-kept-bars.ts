import type { BarFigures } from "../../model/answers/bar-aggregate.ts";
import { barWidths, type Micros } from "../../model/time.ts";
import { normalise, type TimeRange } from "../../model/time-range.ts";
import { computeBar, formatDigits } from "../rows/kept-bars.ts";
import { type AuditContext, type AuditedKey, type AuditFinding, createFinding } from "./audited-key.ts";

const HOUR = barWidths["1h"];

interface StoredBar extends Omit<BarFigures, "ticks" | "digits"> {
  readonly ts: Micros;
  /** Null: stale. */
  readonly ticks: number | null;
  readonly details: string | null;
}

const keptSql = `SELECT ts, open, high, low, close, volume_24h AS volume, n_ticks AS ticks, n_doubtful AS doubtful, details
  FROM kept_bars WHERE series = ? ORDER BY ts`;
const tickSql = `SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND price IS NOT NULL
  ORDER BY ts LIMIT 1`;

/**
 * Every kept bar that is not stale equals the bar of its ticks, and every hour with ticks has a row. This check alone
 * reads all ticks: about two seconds for five million.
 */
export function checkKeptBars({ connection }: AuditContext, audited: AuditedKey): AuditFinding[] {
  const { key } = audited;
  if (key.stream !== "index_ticks") return [];
  const wrong: TimeRange[] = [];
  const unlisted: TimeRange[] = [];
  const lost = audited.settled.filter(({ proof }) => proof === "lost");
  const isLost = (hour: Micros) => lost.some(({ from, to }) => from <= hour && hour + HOUR <= to);
  const seek = connection.statement<Micros>(tickSql).pluck();
  /** Hours with ticks between two rows. */
  const checkBetween = (from: Micros, to: Micros) => {
    for (let at = from; at < to; ) {
      const found = seek.get([key.series, at, to]);
      if (found === undefined) return;
      const hour = Math.floor(found / HOUR) * HOUR;
      unlisted.push({ from: hour, to: hour + HOUR });
      at = hour + HOUR;
    }
  };
  let until = Number.MIN_SAFE_INTEGER;
  for (const { ts, ...kept } of connection.rows<StoredBar>(keptSql, [key.series])) {
    checkBetween(until, ts);
    until = ts + HOUR;
    // A bar may outlive its ticks.
    if (isLost(ts)) continue;
    if (kept.ticks !== null && !isSameBar(kept, computeBar(connection, key.series, ts)))
      wrong.push({ from: ts, to: until });
  }
  checkBetween(until, Number.MAX_SAFE_INTEGER);
  const find = (ranges: readonly TimeRange[], text: string) =>
    normalise(ranges).map((range) => createFinding(audited, "kept_bars", range, text));
  return [
    ...find(wrong, "kept hourly bars differ from their ticks"),
    ...find(unlisted, "ticks in hours that have no bar: bars_1h, bars_4h and bars_1d lack them"),
  ];
}

function isSameBar(kept: Omit<StoredBar, "ts">, computed: BarFigures | undefined): boolean {
  if (computed === undefined) return false;
  const { digits: _, ...figures } = computed;
  const bar = { ...figures, details: formatDigits(computed) };
  return (Object.keys(bar) as (keyof typeof bar)[]).every((column) => kept[column] === bar[column]);
}
