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
const limit = (requests: number, window: "fixed" | "sliding" | "bucket", ms = 1_000) =>
  ({ limit: { requests, ms, window } }) satisfies RecordedBehaviour;

/** Good answers per second at least, and the share of bad ones at most. */
const required: Readonly<Record<string, readonly [number, number]>> = {
  "no faults": [386, 0.001],
  "no faults, 200–400 ms": [25.2, 0.001],
  "limit of 1/s (fixed)": [0.883, 0.051],
  "limit of 1/s (sliding)": [0.812, 0.052],
  "limit of 1/s (bucket)": [0.812, 0.052],
  "limit of 10/s (fixed)": [9.16, 0.034],
  "limit of 10/s (sliding)": [8.76, 0.03],
  "limit of 10/s (bucket)": [9.71, 0.04],
  "limit of 200/s (fixed)": [175, 0.014],
  "limit of 200/s (sliding)": [183, 0.008],
  "limit of 200/s (bucket)": [194, 0.007],
  "limit of 10/s (sliding), 100–900 ms": [8.56, 0.038],
  "limit of 10/s (bucket), Retry-After: 1": [9.15, 0.142],
  "limit of 10/s (fixed), Retry-After: 1": [8.4, 0.147],
  "limit of 10/s (bucket), answered 503": [9.7, 0.881],
  "limit of 60 a minute (fixed)": [0.97, 0.235],
  "limit of 60 a minute (bucket)": [0.968, 0.048],
  "limit of 1200 a minute (fixed)": [19.4, 0.043],
  "10/s becomes 100/s": [91, 0.01],
  "100/s becomes 10/s": [9.2, 0.038],
  "1/s becomes 20/s": [18.4, 0.035],
  "6/s becomes 2/s": [1.78, 0.04],
  "10/s ends": [388, 0.001],
  "10/s begins": [8.55, 0.035],
  "5 % 429 at random": [8.81, 0.057],
  "5 % 429 at random, Retry-After: 1": [22.3, 0.059],
  "10 % 429 at random": [2.3, 0.143],
  "10 % 429 at random, Retry-After: 1": [14.2, 0.113],
  "5 % 429 at random, and 20/s": [2.56, 0.052],
  "20 % 500 at random, and 20/s": [19.4, 0.247],
  "5 % 500 at random": [369, 0.055],
  "17 % 500 at random": [322, 0.187],
  "50 % 500 at random": [189, 0.549],
  "503 above 5 at once, 5–100 ms": [82.4, 0.021],
  "429 above 3 at once": [100, 0.005],
  "503 above 2 at once becomes above 6": [255, 0.018],
  "one handler, 30 s each": [0.0327, 0.001],
  "two handlers, 25 s each": [0.075, 0.046],
  "30–45 s each": [0.201, 0.001],
  "50–65 s each, a third times out": [0.0105, 0.431],
  "slow start: 2 s each, then 20 ms": [131, 0.001],
  "slow start: 503 to half, then to none": [337, 0.134],
  "slow start: 503 to all for 5 s": [340, 0.004],
  "outage of 30 s": [264, 0.003],
};

/** Situation, service, seconds, and how many of them are not counted. */
type Row = [string, RecordedService, number, number];
const rows: Row[] = [
  ["no faults", [{}], 10, 0],
  ["no faults, 200–400 ms", [{ latencyMs: [200, 400] }], 30, 0],
  ...[1, 10, 200].flatMap((rate) =>
    (["fixed", "sliding", "bucket"] as const).map((window): Row => {
      return [`limit of ${rate}/s (${window})`, [limit(rate, window)], rate === 1 ? 330 : 120, 30];
    }),
  ),
  ["limit of 10/s (sliding), 100–900 ms", [{ ...limit(10, "sliding"), latencyMs: [100, 900] }], 120, 30],
  ["limit of 10/s (bucket), Retry-After: 1", [{ ...limit(10, "bucket"), retryAfterMs: 1_000 }], 120, 30],
  ["limit of 10/s (fixed), Retry-After: 1", [{ ...limit(10, "fixed"), retryAfterMs: 1_000 }], 120, 30],
  ["limit of 10/s (bucket), answered 503", [{ ...limit(10, "bucket"), limitStatus: 503 }], 120, 30],
  ["limit of 60 a minute (fixed)", [limit(60, "fixed", MINUTE_MS)], 600, 180],
  ["limit of 60 a minute (bucket)", [limit(60, "bucket", MINUTE_MS)], 600, 180],
  ["limit of 1200 a minute (fixed)", [limit(1_200, "fixed", MINUTE_MS)], 600, 180],
  ["10/s becomes 100/s", [limit(10, "sliding"), { ...limit(100, "sliding"), fromMs: 60_000 }], 120, 90],
  ["100/s becomes 10/s", [limit(100, "fixed"), { ...limit(10, "fixed"), fromMs: 60_000 }], 150, 90],
  ["1/s becomes 20/s", [limit(1, "fixed"), { ...limit(20, "fixed"), fromMs: 60_000 }], 120, 90],
  ["6/s becomes 2/s", [limit(6, "fixed"), { ...limit(2, "fixed"), fromMs: 60_000 }], 120, 90],
  ["10/s ends", [limit(10, "sliding"), { fromMs: 60_000 }], 120, 90],
  ["10/s begins", [{}, { ...limit(10, "sliding"), fromMs: 20_000 }], 120, 50],
  ...[0.05, 0.1].flatMap((share): Row[] => [
    [`${share * 100} % 429 at random`, [{ random: { status: 429, share } }], 60, 0],
    [
      `${share * 100} % 429 at random, Retry-After: 1`,
      [{ random: { status: 429, share }, retryAfterMs: 1_000 }],
      60,
      0,
    ],
  ]),
  [
    "5 % 429 at random, and 20/s",
    [{ ...limit(20, "bucket"), random: { status: 429, share: 0.05 } }],
    180,
    30,
  ],
  [
    "20 % 500 at random, and 20/s",
    [{ ...limit(20, "bucket"), random: { status: 500, share: 0.2 } }],
    180,
    30,
  ],
  ...[0.05, 0.17, 0.5].map((share): Row => {
    return [`${share * 100} % 500 at random`, [{ random: { status: 500, share } }], 60, 0];
  }),
  ["503 above 5 at once, 5–100 ms", [{ maxAtOnce: 5, latencyMs: [5, 100] }], 60, 5],
  ["429 above 3 at once", [{ maxAtOnce: 3, limitStatus: 429 }], 60, 10],
  ["503 above 2 at once becomes above 6", [{ maxAtOnce: 2 }, { maxAtOnce: 6, fromMs: 30_000 }], 60, 45],
  ["one handler, 30 s each", [{ handlers: 1, latencyMs: 30_000 }], 3_600, 600],
  ["two handlers, 25 s each", [{ handlers: 2, latencyMs: 25_000 }], 3_600, 600],
  ["30–45 s each", [{ latencyMs: [30_000, 45_000] }], 3_600, 0],
  ["50–65 s each, a third times out", [{ latencyMs: [50_000, 65_000] }], 3_600, 0],
  ["slow start: 2 s each, then 20 ms", [{ latencyMs: 2_000 }, { fromMs: 20_000 }], 30, 0],
  [
    "slow start: 503 to half, then to none",
    [{ random: { status: 500, share: 0.5 } }, { fromMs: 5_000 }],
    20,
    0,
  ],
  ["slow start: 503 to all for 5 s", [{ random: { status: 500, share: 1 } }, { fromMs: 5_000 }], 60, 0],
  ["outage of 30 s", [{}, { fromMs: 10_000, random: { status: 500, share: 1 } }, { fromMs: 40_000 }], 120, 0],
];

export const recordedRows = rows.map(([situation, service, seconds, settleSeconds]): RecordedRow => {
  const [minGoodPerSecond, maxWastedShare] = required[situation] ?? [Number.NaN, Number.NaN];
  return { situation, service, seconds, settleSeconds, minGoodPerSecond, maxWastedShare };
});
