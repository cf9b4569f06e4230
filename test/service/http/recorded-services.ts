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
  "no faults": [390, 0.001],
  "no faults, 200–400 ms": [25.3, 0.001],
  "limit of 1/s (fixed)": [0.938, 0.044],
  "limit of 1/s (sliding)": [0.894, 0.039],
  "limit of 1/s (bucket)": [0.894, 0.039],
  "limit of 10/s (fixed)": [9.55, 0.019],
  "limit of 10/s (sliding)": [9.27, 0.018],
  "limit of 10/s (bucket)": [9.74, 0.018],
  "limit of 200/s (fixed)": [190, 0.004],
  "limit of 200/s (sliding)": [189, 0.003],
  "limit of 200/s (bucket)": [196, 0.003],
  "limit of 10/s (sliding), 100–900 ms": [8.72, 0.022],
  "limit of 10/s (bucket), Retry-After: 1": [9.48, 0.02],
  "limit of 10/s (fixed), Retry-After: 1": [8.61, 0.018],
  "limit of 10/s (bucket), answered 503": [9.8, 0.018],
  "limit of 60 a minute (fixed)": [0.96, 0.04],
  "limit of 60 a minute (sliding)": [0.958, 0.02],
  "limit of 60 a minute (bucket)": [0.999, 0.087],
  "limit of 1200 a minute (fixed)": [18.6, 0.006],
  "limit of 1200 a minute (sliding)": [17.8, 0.004],
  "10/s becomes 100/s": [94.5, 0.004],
  "100/s becomes 10/s": [9.53, 0.018],
  "1/s becomes 20/s": [18.9, 0.018],
  "6/s becomes 2/s": [1.91, 0.02],
  "10/s ends": [392, 0.001],
  "10/s begins": [9.3, 0.018],
  "2 % 429 at random": [381, 0.022],
  "2 % 429 at random, Retry-After: 1": [53.1, 0.021],
  "5 % 429 at random": [367, 0.054],
  "5 % 429 at random, Retry-After: 1": [22.5, 0.058],
  "10 % 429 at random": [342, 0.109],
  "10 % 429 at random, Retry-After: 1": [14.3, 0.112],
  "25 % 429 at random": [224, 0.272],
  "25 % 429 at random, Retry-After: 1": [4.25, 0.29],
  "5 % 429 at random, and 20/s": [11, 0.109],
  "20 % 500 at random, and 20/s": [19.4, 0.245],
  "5 % 500 at random": [361, 0.054],
  "8 % 500 at random": [358, 0.088],
  "17 % 500 at random": [324, 0.186],
  "25 % 500 at random": [292, 0.275],
  "50 % 500 at random": [190, 0.547],
  "75 % 500 at random": [62.8, 0.821],
  "503 above 2 at once": [98, 0.005],
  "503 above 2 at once, 5–100 ms": [37.4, 0.011],
  "503 above 5 at once, 5–100 ms": [93.4, 0.006],
  "429 above 3 at once": [126, 0.005],
  "503 above 2 at once becomes above 6": [289, 0.003],
  "one handler, 30 s each": [0.0327, 0.003],
  "two handlers, 25 s each": [0.076, 0.032],
  "30–45 s each": [0.203, 0.001],
  "50–65 s each, a third times out": [0.0543, 0.354],
  "slow start: 2 s each, then 20 ms": [132, 0.001],
  "slow start: 503 to half, then to none": [339, 0.131],
  "slow start: 503 to all for 5 s": [343, 0.004],
  "outage of 30 s": [266, 0.004],
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
  const [minGoodPerSecond, maxWastedShare] = required[situation] ?? [Number.NaN, Number.NaN];
  return { situation, service, seconds, settleSeconds, minGoodPerSecond, maxWastedShare };
});
