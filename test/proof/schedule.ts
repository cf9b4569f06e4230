import type { Quirks } from "../../src/simulator/market/quirks.ts";
import { Draw } from "./draw.ts";
import { drawFaults, type Healing } from "./fault-lines.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** When a run is stopped: so long after its beginning, or as its so-many-th page is asked for. */
export type Stop = { readonly ms: number } | { readonly pages: number };

/** One thing that happens before the service is sound again. */
export type Step =
  | { readonly kind: "run"; readonly stop?: Stop }
  | { readonly kind: "pass"; readonly ms: number };

/** Everything that one seed decides. */
export interface Schedule {
  readonly seed: number;
  readonly start: number;
  readonly size: { assets: number; markets: number; exchanges: number };
  readonly refreshSeconds: number;
  readonly quirks: Partial<Quirks>;
  readonly settings: string;
  readonly faults: string;
  readonly steps: readonly Step[];
  readonly healing: Healing;
}

export function drawSchedule(seed: number): Schedule {
  const draw = new Draw(seed);
  // Few rows and many pages: what goes wrong does so between pages.
  const { refreshSeconds, days } = draw.one([
    { refreshSeconds: 120, days: 1 },
    { refreshSeconds: 300, days: draw.whole(1, 2) },
    { refreshSeconds: 900, days: draw.whole(1, 6) },
    { refreshSeconds: 3600, days: draw.one([3, 10, 30, 200]) },
  ]);
  const { text: faults, healing } = drawFaults(draw);
  return {
    seed,
    start: Date.parse("2026-03-01T00:00:00Z") + draw.whole(0, 3 * DAY),
    size: { assets: draw.whole(6, 8), markets: draw.whole(2, 6), exchanges: draw.whole(1, 3) },
    refreshSeconds,
    quirks: drawQuirks(draw, refreshSeconds),
    settings: drawSettings(draw, refreshSeconds, days),
    faults,
    steps: drawSteps(draw, refreshSeconds),
    healing,
  };
}

function drawSettings(draw: Draw, refreshSeconds: number, days: number): string {
  const few = () => draw.one(["{ top: 1 }", "{ top: 2 }", "[BTC]", "[BTC, ETH]", "none"]);
  const ohlcv = draw.chance(0.5)
    ? "false"
    : `{ GWA: ${draw.one(["{ top: 1 }", "[ETH]", "[BTC]"])}, MWA: none, LX: ${draw.chance(0.1) ? "all" : "none"} }`;
  const intraday = `{ GWA: ${few()}, MWA: ${draw.one(["none", "none", "{ top: 1 }"])}, LX: all, days: ${days} }`;
  return `service: { refreshSeconds: ${refreshSeconds}, concurrency: ${draw.one([1, 2, 8, 16])} }
sync:
  ohlcv: ${ohlcv}
  intraday: ${intraday}
  exchangeTickers: ${draw.one(["false", "{ exchanges: all, markets: all }"])}
  marketCap: ${draw.one(["false", "{ every: 5m }"])}
  derivatives: ${draw.chance(0.1) ? "{ exchanges: all }" : "false"}
`;
}

function drawQuirks(draw: Draw, refreshSeconds: number): Partial<Quirks> {
  const all: Partial<Quirks> = {
    lastPage: draw.one(["null", "empty", "absent", "own-id"]),
    cursor: draw.one(["exclusive", "inclusive"]),
    sizeBesideStartAfter: draw.one(["honoured", "needs-timestamp"]),
    deadCursor: draw.one(["404", "400", "empty"]),
    ids: draw.one(["uuid", "opaque"]),
    decimals: draw.one(["string", "number"]),
    extraProperties: draw.chance(0.5),
    reorderedProperties: draw.chance(0.5),
    exchangeTickerPage: draw.one([0, 3]),
    fractionDigits: draw.one([0, 3, 6]),
    ohlcvTimestamp: draw.one(["start", "end"]),
    barEnd: draw.one(["23:59:59.999", "midnight"]),
    barTimestamp: draw.chance(0.5),
    upperBound: draw.one(["inclusive", "exclusive"]),
    partialBar: draw.chance(0.5),
    noData: draw.one(["404", "empty"]),
    // Late, but not later than what may be claimed.
    late: draw.one([
      { perMille: 0, seconds: 0 },
      { perMille: 30, seconds: refreshSeconds },
    ]),
    missingPerMille: draw.one([0, 0, 5, 40]),
    tokenReissue: draw.one(["new", "same"]),
    awkwardTokens: draw.chance(0.3),
  };
  const names = draw.some(Object.keys(all) as (keyof Quirks)[], draw.whole(0, 10));
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

/** The finer the cadence, the shorter the absences: time that went by is time to be filled. */
function drawSteps(draw: Draw, refreshSeconds: number): Step[] {
  // Most runs are over soon, so most stops are drawn near the beginning; one in four may fall into a pause.
  const stop = (): Stop =>
    draw.chance(0.25)
      ? { ms: draw.whole(50, 30_000) }
      : { pages: draw.chance(0.5) ? draw.whole(1, 8) : draw.whole(1, 60) };
  const run = (): Step => (draw.chance(0.4) ? { kind: "run", stop: stop() } : { kind: "run" });
  const longest = { 120: 1, 300: 2, 900: 5, 3600: 20 }[refreshSeconds] ?? 1;
  const steps = [run()];
  while (draw.chance(0.5) && steps.length < 5) {
    const ms = draw.one([60_000, HOUR, draw.whole(1, 23) * HOUR, DAY, draw.whole(1, longest) * DAY]);
    const isLongAbsence = refreshSeconds === 3600 && draw.chance(0.3);
    if (draw.chance(0.7)) steps.push({ kind: "pass", ms: isLongAbsence ? draw.whole(195, 206) * DAY : ms });
    steps.push(run());
  }
  return steps;
}
