import type { RecordedBehaviour, RecordedService } from "../../support/service/recorded-service.ts";

/** A service, and what a pace must reach with it. */
export interface RecordedRow {
  readonly situation: string;
  readonly service: RecordedService;
  readonly seconds: number;
  /** Not counted: for finding the limit. */
  readonly settleSeconds: number;
  /** Good answers per second, and the share of requests that were answered badly. */
  readonly minGoodPerSecond: number;
  readonly maxWastedShare: number;
}

const MINUTE_MS = 60_000;
const limit = (
  requests: number,
  window: "fixed" | "sliding" | "bucket",
  more: RecordedBehaviour = {},
  ms = 1_000,
) => ({ limit: { requests, ms, window }, ...more });
const drawn = (status: 429 | 500, share: number) => ({ random: { status, share } });
const after1s = { retryAfterMs: 1_000 };
const from = (fromMs: number, behaviour: RecordedBehaviour = {}) => ({ fromMs, ...behaviour });

/** Seconds and how many of them are not counted; good answers per second at least, and the share of bad ones at most. */
type Row = [situation: string, service: RecordedService, time: [number, number], required: [number, number]];
const rows: Row[] = [
  ["no faults", [{}], [10, 0], [386, 0.001]],
  ["no faults, 200–400 ms", [{ latencyMs: [200, 400] }], [30, 0], [25.2, 0.001]],
  ["limit of 1/s (fixed)", [limit(1, "fixed")], [330, 30], [0.883, 0.051]],
  ["limit of 1/s (sliding)", [limit(1, "sliding")], [330, 30], [0.812, 0.052]],
  ["limit of 1/s (bucket)", [limit(1, "bucket")], [330, 30], [0.812, 0.052]],
  ["limit of 10/s (fixed)", [limit(10, "fixed")], [120, 30], [9.16, 0.034]],
  ["limit of 10/s (sliding)", [limit(10, "sliding")], [120, 30], [8.76, 0.03]],
  ["limit of 10/s (bucket)", [limit(10, "bucket")], [120, 30], [9.71, 0.04]],
  ["limit of 200/s (fixed)", [limit(200, "fixed")], [120, 30], [175, 0.014]],
  ["limit of 200/s (sliding)", [limit(200, "sliding")], [120, 30], [183, 0.008]],
  ["limit of 200/s (bucket)", [limit(200, "bucket")], [120, 30], [194, 0.007]],
  ["10/s (sliding), 100–900 ms", [limit(10, "sliding", { latencyMs: [100, 900] })], [120, 30], [8.56, 0.038]],
  ["10/s (bucket), Retry-After: 1", [limit(10, "bucket", after1s)], [120, 30], [9.15, 0.142]],
  ["10/s (fixed), Retry-After: 1", [limit(10, "fixed", after1s)], [120, 30], [8.4, 0.147]],
  ["10/s (bucket), answered 503", [limit(10, "bucket", { limitStatus: 503 })], [120, 30], [9.7, 0.881]],
  ["limit of 60 a minute (fixed)", [limit(60, "fixed", {}, MINUTE_MS)], [600, 180], [0.97, 0.235]],
  ["limit of 60 a minute (bucket)", [limit(60, "bucket", {}, MINUTE_MS)], [600, 180], [0.968, 0.048]],
  ["limit of 1200 a minute (fixed)", [limit(1_200, "fixed", {}, MINUTE_MS)], [600, 180], [19.4, 0.043]],
  ["10/s, then 100/s", [limit(10, "sliding"), from(60_000, limit(100, "sliding"))], [120, 90], [91, 0.01]],
  ["100/s, then 10/s", [limit(100, "fixed"), from(60_000, limit(10, "fixed"))], [150, 90], [9.2, 0.038]],
  ["1/s, then 20/s", [limit(1, "fixed"), from(60_000, limit(20, "fixed"))], [120, 90], [18.4, 0.035]],
  ["6/s, then 2/s", [limit(6, "fixed"), from(60_000, limit(2, "fixed"))], [120, 90], [1.78, 0.04]],
  ["10/s ends", [limit(10, "sliding"), from(60_000)], [120, 90], [388, 0.001]],
  ["10/s begins", [{}, from(20_000, limit(10, "sliding"))], [120, 50], [8.55, 0.035]],
  ["5 % 429 at random", [drawn(429, 0.05)], [60, 0], [8.81, 0.057]],
  ["5 % 429 at random, Retry-After: 1", [{ ...drawn(429, 0.05), ...after1s }], [60, 0], [22.3, 0.059]],
  ["10 % 429 at random", [drawn(429, 0.1)], [60, 0], [2.3, 0.143]],
  ["10 % 429 at random, Retry-After: 1", [{ ...drawn(429, 0.1), ...after1s }], [60, 0], [14.2, 0.113]],
  ["5 % 429 at random, and 20/s", [limit(20, "bucket", drawn(429, 0.05))], [180, 30], [2.56, 0.052]],
  ["20 % 500 at random, and 20/s", [limit(20, "bucket", drawn(500, 0.2))], [180, 30], [19.4, 0.247]],
  ["5 % 500 at random", [drawn(500, 0.05)], [60, 0], [369, 0.055]],
  ["17 % 500 at random", [drawn(500, 0.17)], [60, 0], [322, 0.187]],
  ["50 % 500 at random", [drawn(500, 0.5)], [60, 0], [189, 0.549]],
  ["503 above 5 at once, 5–100 ms", [{ maxAtOnce: 5, latencyMs: [5, 100] }], [60, 5], [82.4, 0.021]],
  ["429 above 3 at once", [{ maxAtOnce: 3, limitStatus: 429 }], [60, 10], [100, 0.005]],
  ["503 above 2, then 6 at once", [{ maxAtOnce: 2 }, from(30_000, { maxAtOnce: 6 })], [60, 45], [255, 0.018]],
  ["one handler, 30 s each", [{ handlers: 1, latencyMs: 30_000 }], [3_600, 600], [0.0327, 0.001]],
  ["two handlers, 25 s each", [{ handlers: 2, latencyMs: 25_000 }], [3_600, 600], [0.075, 0.046]],
  ["30–45 s each", [{ latencyMs: [30_000, 45_000] }], [3_600, 0], [0.201, 0.001]],
  ["50–65 s each, a third times out", [{ latencyMs: [50_000, 65_000] }], [3_600, 0], [0.0105, 0.431]],
  ["slow start: 2 s each, then 20 ms", [{ latencyMs: 2_000 }, from(20_000)], [30, 0], [131, 0.001]],
  ["slow start: 500 to half, then to none", [drawn(500, 0.5), from(5_000)], [20, 0], [337, 0.134]],
  ["slow start: 500 to all for 5 s", [drawn(500, 1), from(5_000)], [60, 0], [340, 0.004]],
  ["outage of 30 s", [{}, from(10_000, drawn(500, 1)), from(40_000)], [120, 0], [264, 0.003]],
];

export const recordedRows = rows.map(
  ([situation, service, [seconds, settleSeconds], [minGoodPerSecond, maxWastedShare]]): RecordedRow => ({
    situation,
    service,
    seconds,
    settleSeconds,
    minGoodPerSecond,
    maxWastedShare,
  }),
);
