import { describeConfirmations } from "../../../model/status/gap-state.ts";
import type { WarehouseStatus } from "../../../model/status/warehouse-status.ts";
import type { BackfillAnswer } from "../../api-answers.ts";
import { brief, count, countNoun, title } from "./text-format.ts";
import { duration, momentText } from "./time-format.ts";

// One line of proof: what is stored, since when it is whole, and what is missing of it. Pure functions without access to the page.

type ProvenStatus = Pick<WarehouseStatus, "confirmations" | "generated_at" | "streams">;

/** 801,233 rows, every second since 2026-05-01 10:42 UTC covered except 5 s of exchange ticks */
export function describeProof(status: ProvenStatus, backfill: BackfillAnswer | null): string {
  const { streams, confirmations, generated_at } = status;
  const sum = (of: "rows" | "open") => streams.reduce((total, stream) => total + stream[of], 0);
  const rows = `${count(sum("rows"))} rows`;
  const lost = streams
    .filter((stream) => stream.lost > 0)
    .map(({ stream, lost_max_seconds }) => `${duration(lost_max_seconds)} of ${title(stream).toLowerCase()}`)
    .join(" and ");
  const lostText = lost === "" ? "nothing lost" : `${lost} lost`;
  if (backfill) return `${rows}, ${describeBackfill(backfill)}, ${lostText}`;
  if (sum("open") > 0) {
    const most = Math.max(...streams.map(({ open_max_seconds }) => open_max_seconds));
    return `${rows}, ${countNoun(sum("open"), "range")} still open, at most ${duration(most)} of a series, ${lostText}`;
  }
  const since = (name: string) => streams.find(({ stream, rows }) => stream === name && rows > 0)?.from_time;
  const [seconds, days] = [since("index_ticks"), since("ohlcv")];
  const whole = [
    ...(seconds ? [`every second since ${firstWholeMinute(seconds)}`] : []),
    ...(days ? [`every day since ${days.slice(0, 10)}`] : []),
  ].join(" and ");
  const covered = lost === "" ? `${whole} covered, ${lostText}` : `${whole} covered except ${lost}`;
  const confirmation = describeConfirmations(confirmations, generated_at);
  return [rows, whole === "" ? lostText : covered, ...(confirmation ? [confirmation] : [])].join(", ");
}

/** The day alone would claim up to 24 hours that nobody has proven. */
const firstWholeMinute = (time: string) => momentText(Math.ceil(Date.parse(time) / 60_000) * 60_000_000, 16);

/** first fill 65 %, about 10 min left, 81K rows/s */
export function describeBackfill({ percent, seconds_left, rows_per_second }: BackfillAnswer): string {
  const left = seconds_left === null ? "" : `, about ${duration(seconds_left)} left`;
  return `first fill ${percent} %${left}, ${brief(rows_per_second)} rows/s`;
}
