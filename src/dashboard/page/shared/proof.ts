// One line of proof: what is stored, since when it is whole, and what is missing of it. Pure functions without access to the page.

import type { StreamStatus } from "../../../model/status/warehouse-status.ts";
import type { BackfillAnswer } from "../../api-answers.ts";
import { brief, count, countNoun, duration, momentText } from "./text-format.ts";

type ProvenStream = Pick<
  StreamStatus,
  "stream" | "rows" | "from_time" | "open" | "open_seconds" | "lost_seconds"
>;

/** 801,233 rows, every second since 2026-05-01 10:42 UTC covered, 5 s lost */
export function describeProof(streams: readonly ProvenStream[], backfill: BackfillAnswer | null): string {
  const sum = (of: "rows" | "open" | "open_seconds" | "lost_seconds") =>
    streams.reduce((total, stream) => total + stream[of], 0);
  const rows = `${count(sum("rows"))} rows`;
  const lost = sum("lost_seconds") > 0 ? `${duration(sum("lost_seconds"))} lost` : "nothing lost";
  if (backfill) return `${rows}, ${describeBackfill(backfill)}, ${lost}`;
  if (sum("open") > 0)
    return `${rows}, ${countNoun(sum("open"), "range")} of ${duration(sum("open_seconds"))} still open, ${lost}`;
  const since = (name: string) =>
    streams.find(({ stream, rows }) => stream === name && rows > 0)?.from_time ?? null;
  const [seconds, days] = [since("index_ticks"), since("ohlcv")];
  const whole = [
    ...(seconds ? [`every second since ${firstWholeMinute(seconds)}`] : []),
    ...(days ? [`every day since ${days.slice(0, 10)}`] : []),
  ];
  return [rows, ...(whole.length > 0 ? [`${whole.join(" and ")} covered`] : []), lost].join(", ");
}

/** The day alone would claim up to 24 hours that nobody has proven. */
function firstWholeMinute(time: string): string {
  return momentText(Math.ceil(Date.parse(time) / 60_000) * 60_000_000, 16);
}

/** first fill 65 %, about 10 min left, 81K rows/s */
export function describeBackfill({ percent, seconds_left, rows_per_second }: BackfillAnswer): string {
  const left = seconds_left === null ? "" : `, about ${duration(seconds_left)} left`;
  return `first fill ${percent} %${left}, ${brief(rows_per_second)} rows/s`;
}
