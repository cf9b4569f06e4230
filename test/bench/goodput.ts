import { measureGoodput } from "../support/service/goodput.ts";
import {
  changedLimitRow,
  failureRow,
  limitRow,
  measureRow,
  overloadRow,
  pauseRow,
} from "../support/service/goodput-table.ts";
import type { Figure } from "./figures.ts";

const SEED = 1;

const rows = [
  ...[0.17, 0.25, 0.5, 0.75].map((share) => failureRow(share, "500", 10)),
  ...[0.25, 0.5, 0.75].map((share) => failureRow(share, "reset", 10)),
  ...(["second", "sliding", "bucket"] as const).flatMap((window) => [
    limitRow(1, window, 330),
    limitRow(10, window, 120),
    limitRow(200, window, 50),
  ]),
  changedLimitRow(10, 100, 30),
  changedLimitRow(100, 10, 60),
  changedLimitRow(1, 20, 30),
  pauseRow(0.05, 60),
  pauseRow(0.1, 60),
  overloadRow(2, 30),
];

/** The real client against the simulator, in virtual time: 20 ms latency, eight requests in flight. */
export async function benchGoodput(print: (line: string) => void): Promise<Figure[]> {
  const clean = await measureGoodput({ faults: [], seconds: 10, seed: SEED });
  print(`without faults: ${clean.pagesPerSecond.toFixed(0)} pages/s in virtual time; the ratios refer to it`);
  const figures: Figure[] = [];
  for (const row of rows) {
    const { ratio, rejectedShare, pagesPerSecond } = await measureRow(row, clean.pagesPerSecond, SEED);
    const { situation: name, atLeast, maxRejectedShare } = row;
    figures.push({ name, note: `${pagesPerSecond.toFixed(1)} pages/s`, measured: ratio, atLeast });
    if (maxRejectedShare !== undefined)
      figures.push({ name: "  answered 429", measured: rejectedShare, atMost: maxRejectedShare });
  }
  return figures;
}
