import type { Fault } from "../simulator/faults.ts";
import type { Quirks } from "../simulator/quirks.ts";
import { SeededDraw } from "./draw.ts";
import { drawFaults, type Recovery } from "./draw-faults.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FIRST_START_MS = Date.parse("2026-03-01T00:00:00Z");

/** When a run is stopped: after `ms`, or at the request of history page number `pages`. */
export type StopPoint = { readonly ms: number } | { readonly pages: number };

/** How a run is stopped: as by SIGTERM, or as by SIGKILL, which leaves the files as they are at that moment. */
type StopSignal = "term" | "kill";

/** One step of a schedule while the service has faults. */
export type ScheduleStep =
  | { readonly kind: "run"; readonly stop?: StopPoint; readonly signal?: StopSignal }
  /** The daemon's supervisor follows the live feed for this time. */
  | { readonly kind: "follow"; readonly ms: number }
  | { readonly kind: "wait"; readonly ms: number };

/** Everything that is drawn from one seed. */
export interface FaultSchedule {
  readonly seed: number;
  readonly start: number;
  readonly size: { assets: number; markets: number; exchanges: number };
  readonly refreshSeconds: number;
  readonly quirks: Partial<Quirks>;
  readonly settings: string;
  readonly faults: readonly Fault[];
  readonly steps: readonly ScheduleStep[];
  readonly recovery: Recovery;
  /** The faults that no answer shows. */
  readonly lies: readonly Fault[];
  /** Ingest runs in a thread of its own, as in the program; in most schedules it shares the thread, which is faster. */
  readonly hasIngestThread: boolean;
  /** The first run creates the warehouse; in most schedules it finds an empty one, which is faster. */
  readonly isNewFile: boolean;
}

/** The service keeps this many days. Such a world has one series, so that it has about as many rows as the others. */
const WHOLE_WINDOW_DAYS = 200;

/** Few rows and many pages, because most faults matter between pages. */
interface Span {
  readonly refreshSeconds: number;
  readonly days: number;
}

export function drawSchedule(seed: number): FaultSchedule {
  const draw = new SeededDraw(seed);
  const { refreshSeconds, days } = draw.one<Span>([
    { refreshSeconds: 300, days: 1 },
    { refreshSeconds: 600, days: draw.one([1, 1, 1, 2]) },
    { refreshSeconds: 900, days: draw.integer(1, 2) },
    { refreshSeconds: 1800, days: draw.integer(1, 4) },
    { refreshSeconds: 3600, days: draw.one([1, 3, 8]) },
    { refreshSeconds: 3600, days: draw.chance(0.1) ? WHOLE_WINDOW_DAYS : draw.one([2, 5]) },
  ]);
  const steps = drawSteps(draw, { refreshSeconds, days });
  const isLive = steps.some(({ kind }) => kind === "follow");
  const { quirks: sizeQuirks, liquidIndices } = drawWorldSize(seed, { isLive, days });
  const hasShortHistory = sizeQuirks.listed !== undefined;
  const { faults, recovery, lies } = drawFaults(draw, { isLive, hasShortHistory });
  const assets = draw.integer(7, 12);
  return {
    seed,
    start: FIRST_START_MS + draw.integer(0, 3 * DAY_MS),
    size: { assets, markets: draw.integer(2, 6), exchanges: draw.integer(1, 3) },
    refreshSeconds,
    quirks: {
      ...drawQuirks(draw, refreshSeconds),
      compression: seed % 4 === 0 ? "gzip" : "none",
      ...sizeQuirks,
    },
    settings: drawSettings(draw, { refreshSeconds, days, assets, liquidIndices }),
    faults,
    steps,
    recovery,
    lies,
    hasIngestThread: draw.chance(0.0025),
    isNewFile: draw.chance(0.03),
  };
}

interface WorldSize {
  readonly quirks: Pick<Partial<Quirks>, "listed" | "optionStrikes">;
  /** The selector of the liquid indices. */
  readonly liquidIndices: string;
}

/**
 * In most worlds all indices are listed on one day: 4,000 daily bars show no more than 400 on as many pages, and 1,000 options
 * no more than 100. The size is drawn apart, so that the faults of a seed do not depend on it.
 */
function drawWorldSize(seed: number, { isLive, days }: { isLive: boolean; days: number }): WorldSize {
  const draw = new SeededDraw(~seed);
  if (draw.chance(0.03)) return { quirks: {}, liquidIndices: "all" };
  // Some series begin within the service's window, the others before it.
  const isYoung = draw.chance(0.5) && days === WHOLE_WINDOW_DAYS;
  const listedDays = isYoung ? draw.integer(30, 150) : draw.integer(250, 500);
  const on = new Date(FIRST_START_MS - listedDays * DAY_MS).toISOString().slice(0, 10);
  return {
    quirks: { listed: { perMille: 1000, on }, optionStrikes: 1 },
    // A third walk of the same kind shows little that two do not.
    liquidIndices: draw.chance(isLive ? 0.5 : 0.1) ? "all" : draw.one(["[BLX, ELX]", "[BLX]", "[XRPLX]"]),
  };
}

interface SettingsOptions extends Span {
  readonly assets: number;
  readonly liquidIndices: string;
}

function drawSettings(
  draw: SeededDraw,
  { refreshSeconds, days, assets, liquidIndices }: SettingsOptions,
): string {
  // The first LUNA is young, the second ended months ago, LIBRA never had a price.
  const special = [...(assets >= 11 ? ["[LUNA]"] : []), ...(assets >= 12 ? ["[BTC, LIBRA]"] : [])];
  const few = () => draw.one(["{ top: 1 }", "{ top: 2 }", "[BTC]", "[BTC, ETH]", "none", ...special]);
  // Solana is young: its daily bars are half as many as those of the others.
  const ohlcv = draw.chance(0.75)
    ? "false"
    : `{ GWA: ${draw.one(["{ top: 1 }", "[SOL]", "[SOL]", "[SOL]", ...special])}, MWA: none, LX: ${draw.chance(0.03) ? "all" : "none"} }`;
  const intraday =
    days === WHOLE_WINDOW_DAYS
      ? `{ GWA: [BTC], MWA: none, LX: none, days: ${days} }`
      : `{ GWA: ${few()}, MWA: ${draw.one(["none", "none", "{ top: 1 }"])}, LX: ${liquidIndices}, days: ${days} }`;
  return `service: { refreshSeconds: ${refreshSeconds}, concurrency: ${draw.one([1, 2, 8, 16])} }
sync:
  ohlcv: ${ohlcv}
  intraday: ${intraday}
  exchangeTickers: ${draw.one(["false", "{ exchanges: all, markets: all }"])}
  marketCap: ${draw.one(["false", "{ every: 5m }"])}
  derivatives: ${draw.chance(0.1) ? "{ exchanges: all, every: 15m }" : "false"}
`;
}

function drawQuirks(draw: SeededDraw, refreshSeconds: number): Partial<Quirks> {
  const all: Partial<Quirks> = {
    lastPage: draw.one(["null", "empty", "absent", "own-id"]),
    cursor: draw.one(["exclusive", "inclusive"]),
    sizeBesideStartAfter: draw.one(["honoured", "needs-timestamp"]),
    ids: draw.one(["uuid", "opaque"]),
    exchangeTickerPage: draw.one([0, 3]),
    ohlcvTimestamp: draw.one(["start", "end"]),
    barEnd: draw.one(["23:59:59.999", "midnight"]),
    barTimestamp: draw.chance(0.5),
    upperBound: draw.one(["inclusive", "exclusive"]),
    partialBar: draw.chance(0.5),
    noData: draw.one(["404", "empty", "400"]),
    futureTimestamp: draw.one(["accepted", "rejected"]),
    maxSize: draw.one([2000, 1000, 150]),
    maxPageRows: draw.one([2000, 100]),
    fieldErrors: draw.chance(0.5),
    // Late, but within the settle delay.
    late: draw.one([
      { perMille: 0, seconds: 0 },
      { perMille: 30, seconds: refreshSeconds },
    ]),
    missingPerMille: draw.one([0, 0, 5, 40]),
    awkwardTokens: draw.chance(0.3),
  };
  const names = draw.sample(Object.keys(all) as (keyof Quirks)[], draw.integer(0, 10));
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

/** A shorter cadence gets shorter pauses between runs, because the next run has to fill each pause. */
function drawSteps(draw: SeededDraw, { refreshSeconds, days }: Span): ScheduleStep[] {
  // Most runs are short, so most stops are early. One stop in four is by time, so that it can hit a retry delay.
  const stop = (): StopPoint =>
    draw.chance(0.25)
      ? { ms: draw.integer(50, 30_000) }
      : { pages: draw.chance(0.5) ? draw.integer(1, 8) : draw.integer(1, 60) };
  const run = (): ScheduleStep =>
    draw.chance(0.4)
      ? { kind: "run", stop: stop(), signal: draw.one<StopSignal>(["term", "kill"]) }
      : { kind: "run" };
  const maxDays = { 900: 2, 1800: 3, 3600: 6 }[refreshSeconds] ?? 1;
  const steps = [run()];
  while (draw.chance(0.36) && steps.length < 5) {
    const ms = draw.one([
      60_000,
      HOUR_MS,
      draw.integer(1, 23) * HOUR_MS,
      DAY_MS,
      draw.integer(1, maxDays) * DAY_MS,
    ]);
    // Ranges leave the service's window meanwhile.
    const isLongPause = days === WHOLE_WINDOW_DAYS && draw.chance(0.5);
    if (draw.chance(0.7))
      steps.push({ kind: "wait", ms: isLongPause ? draw.integer(195, 206) * DAY_MS : ms });
    steps.push(run());
  }
  // Long periods would need hours of heartbeats.
  if (refreshSeconds <= 600 && draw.chance(0.3)) {
    const follow: ScheduleStep = { kind: "follow", ms: draw.integer(2, 6) * refreshSeconds * 1000 };
    steps.splice(draw.integer(0, steps.length), 0, follow);
  }
  // A stop by time can come before the first fault: one more run meets it.
  if (steps.every((step) => step.kind === "wait" || (step.kind === "run" && step.stop && "ms" in step.stop)))
    steps.push({ kind: "run" });
  return steps;
}
