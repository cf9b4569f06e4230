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
  /** Good answers per second of the controllers that the pace replaced: one of the rate, one of the number at once. */
  readonly formerGoodPerSecond: number;
  /** What of it the pace must reach. */
  readonly minShareOfFormer: number;
}

const MINUTE_MS = 60_000;
const limit = (requests: number, window: "fixed" | "sliding" | "bucket", ms = 1_000) =>
  ({ limit: { requests, ms, window } }) satisfies RecordedBehaviour;

/** A draw more or less. */
const MIN_SHARE_OF_FORMER = 0.98;
/**
 * The former controllers spent a minute's requests in its first seconds, and asked again and again until it was over: 5 to 15 %
 * of their requests were wasted. A steady pace wastes a quarter of that at most, and fetches 13 to 15 % more in sliding windows.
 */
const tradedShares: Readonly<Record<string, number>> = {
  "limit of 60 a minute (fixed)": 0.96,
  "limit of 1200 a minute (fixed)": 0.93,
};

/** Good answers per second of the former controllers; good ones at least, and the share of bad ones at most. */
const required: Readonly<Record<string, readonly [number, number, number]>> = {
  "no faults": [398, 386, 0.001],
  "no faults, 200–400 ms": [25.9, 25.2, 0.001],
  "limit of 1/s (fixed)": [0.933, 0.938, 0.044],
  "limit of 1/s (sliding)": [0.913, 0.889, 0.039],
  "limit of 1/s (bucket)": [0.913, 0.889, 0.039],
  "limit of 10/s (fixed)": [9.61, 9.55, 0.019],
  "limit of 10/s (sliding)": [9.46, 9.28, 0.018],
  "limit of 10/s (bucket)": [9.94, 9.7, 0.018],
  "limit of 200/s (fixed)": [194, 190, 0.004],
  "limit of 200/s (sliding)": [191, 189, 0.003],
  "limit of 200/s (bucket)": [200, 194, 0.003],
  "limit of 10/s (sliding), 100–900 ms": [8.66, 8.72, 0.022],
  "limit of 10/s (bucket), Retry-After: 1": [9.66, 9.48, 0.02],
  "limit of 10/s (fixed), Retry-After: 1": [8.79, 8.4, 0.018],
  "limit of 10/s (bucket), answered 503": [10, 9.71, 0.018],
  "limit of 60 a minute (fixed)": [1, 0.935, 0.04],
  "limit of 60 a minute (sliding)": [0.857, 0.958, 0.02],
  "limit of 60 a minute (bucket)": [1, 0.999, 0.087],
  "limit of 1200 a minute (fixed)": [20, 18.2, 0.006],
  "limit of 1200 a minute (sliding)": [16.2, 17.8, 0.004],
  "10/s becomes 100/s": [95.5, 94.5, 0.004],
  "100/s becomes 10/s": [9.62, 9.54, 0.018],
  "1/s becomes 20/s": [19.2, 18.9, 0.018],
  "6/s becomes 2/s": [1.87, 1.91, 0.02],
  "10/s ends": [400, 388, 0.001],
  "10/s begins": [9.46, 9.3, 0.018],
  "2 % 429 at random": [389, 380, 0.022],
  "2 % 429 at random, Retry-After: 1": [54.2, 52.6, 0.021],
  "5 % 429 at random": [375, 359, 0.054],
  "5 % 429 at random, Retry-After: 1": [23, 22.3, 0.058],
  "10 % 429 at random": [347, 342, 0.109],
  "10 % 429 at random, Retry-After: 1": [14.6, 14.2, 0.112],
  "25 % 429 at random": [1.07, 224, 0.272],
  "25 % 429 at random, Retry-After: 1": [2.68, 4.25, 0.29],
  "5 % 429 at random, and 20/s": [9.12, 11, 0.109],
  "20 % 500 at random, and 20/s": [19.6, 19.4, 0.245],
  "5 % 500 at random": [369, 356, 0.054],
  "8 % 500 at random": [366, 353, 0.088],
  "17 % 500 at random": [331, 321, 0.186],
  "25 % 500 at random": [298, 290, 0.275],
  "50 % 500 at random": [194, 189, 0.547],
  "75 % 500 at random": [51.4, 62.8, 0.821],
  "503 above 2 at once": [100, 97.1, 0.005],
  "503 above 2 at once, 5–100 ms": [38.2, 37.1, 0.011],
  "503 above 5 at once, 5–100 ms": [95.4, 92.5, 0.006],
  "429 above 3 at once": [106, 126, 0.005],
  "503 above 2 at once becomes above 6": [285, 289, 0.003],
  "one handler, 30 s each": [0.0283, 0.0327, 0.003],
  "two handlers, 25 s each": [0.0757, 0.076, 0.032],
  "30–45 s each": [0.208, 0.201, 0.001],
  "50–65 s each, a third times out": [0.0112, 0.0543, 0.354],
  "slow start: 2 s each, then 20 ms": [135, 131, 0.001],
  "slow start: 503 to half, then to none": [346, 338, 0.131],
  "slow start: 503 to all for 5 s": [350, 340, 0.004],
  "outage of 30 s": [272, 266, 0.004],
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
  ["limit of 60 a minute (sliding)", [limit(60, "sliding", MINUTE_MS)], 600, 180],
  ["limit of 60 a minute (bucket)", [limit(60, "bucket", MINUTE_MS)], 600, 180],
  ["limit of 1200 a minute (fixed)", [limit(1_200, "fixed", MINUTE_MS)], 600, 180],
  ["limit of 1200 a minute (sliding)", [limit(1_200, "sliding", MINUTE_MS)], 600, 180],
  ["10/s becomes 100/s", [limit(10, "sliding"), { ...limit(100, "sliding"), fromMs: 60_000 }], 120, 90],
  ["100/s becomes 10/s", [limit(100, "fixed"), { ...limit(10, "fixed"), fromMs: 60_000 }], 150, 90],
  ["1/s becomes 20/s", [limit(1, "fixed"), { ...limit(20, "fixed"), fromMs: 60_000 }], 120, 90],
  ["6/s becomes 2/s", [limit(6, "fixed"), { ...limit(2, "fixed"), fromMs: 60_000 }], 120, 90],
  ["10/s ends", [limit(10, "sliding"), { fromMs: 60_000 }], 120, 90],
  ["10/s begins", [{}, { ...limit(10, "sliding"), fromMs: 20_000 }], 120, 50],
  ...[0.02, 0.05, 0.1, 0.25].flatMap((share): Row[] => [
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
  ...[0.05, 0.08, 0.17, 0.25, 0.5, 0.75].map((share): Row => {
    return [`${share * 100} % 500 at random`, [{ random: { status: 500, share } }], 60, 0];
  }),
  ["503 above 2 at once", [{ maxAtOnce: 2 }], 30, 1],
  ["503 above 2 at once, 5–100 ms", [{ maxAtOnce: 2, latencyMs: [5, 100] }], 60, 5],
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
  const unknown = [Number.NaN, Number.NaN, Number.NaN] as const;
  const [formerGoodPerSecond, minGoodPerSecond, maxWastedShare] = required[situation] ?? unknown;
  const minShareOfFormer = tradedShares[situation] ?? MIN_SHARE_OF_FORMER;
  const floors = { formerGoodPerSecond, minShareOfFormer, minGoodPerSecond, maxWastedShare };
  return { situation, service, seconds, settleSeconds, ...floors };
});
