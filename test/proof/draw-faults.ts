import type { Conditions } from "../simulator/fault.ts";
import { retryAfterForms } from "../simulator/faults/responses.ts";
import { Fault } from "../simulator/faults.ts";
import type { SeededDraw } from "./draw.ts";

/** What repairs the effects of a schedule's faults: the next run, the run of the next night, or a verification. */
export type Recovery = "run" | "night" | "verify";

type DrawFault = (draw: SeededDraw) => Fault | readonly Fault[];
type CreateFault = (conditions: Conditions) => Fault;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const TOKEN = "/oauth/token";
const historyEndpoints = ["/index-ticker", "/ohlcv"] as const;
const listEndpoints = ["/asset", "/market", "/exchange", "/market-cap"] as const;

/** Strikes with some probability, at most a few times. */
function shortLived(draw: SeededDraw): Conditions {
  return { p: draw.one([0.03, 0.1, 0.3, 1]), times: draw.integer(1, 3) };
}

/** Every GET, or those of one endpoint. */
function anyEndpoint(draw: SeededDraw): Conditions {
  const on = draw.one([undefined, undefined, "/index-ticker", "/ohlcv", "/asset", "/market-cap"]);
  return on === undefined ? {} : { on };
}

function historyEndpoint(draw: SeededDraw): Conditions {
  return { on: draw.one(historyEndpoints) };
}

/** One of the faults, for a short time. */
const brieflyOn =
  (endpointOf: (draw: SeededDraw) => Conditions) =>
  (...faults: readonly CreateFault[]): DrawFault =>
  (draw) => {
    const endpoint = endpointOf(draw);
    return draw.one(faults)({ ...endpoint, ...shortLived(draw) });
  };
const onAnyEndpoint = brieflyOn(anyEndpoint);
const onHistoryEndpoint = brieflyOn(historyEndpoint);

/** One fault with each of these values. */
function each<Value>(
  create: (value: Value, conditions: Conditions) => Fault,
  ...values: readonly Value[]
): CreateFault[] {
  return values.map((value) => (conditions) => create(value, conditions));
}

/** A. Tokens. */
const tokens: readonly DrawFault[] = [
  (draw) =>
    draw.one([...each(Fault.status, 500, 503), Fault.html, Fault.reset, Fault.noContent])({
      on: TOKEN,
      times: 2,
    }),
  (draw) => Fault.tokenLife(draw.one([31, 120, 600]), { p: 0.7 }),
  (draw) => Fault.expiresIn(draw.one([0, -5, "string", "missing", 1]), { times: 3 }),
  () => Fault.sameToken({ p: 0.5 }),
  (draw) => Fault.status(draw.one([400, 401]), { on: TOKEN, times: 1 }),
  (draw) => Fault.scopeWithout(draw.one(["read:LX", "read:ohlcv", "read:market-cap"]), { times: 1 }),
  (draw) => Fault.revoke({ ...anyEndpoint(draw), p: 0.05, total: draw.integer(1, 4) }),
  (draw) => Fault.status(403, { ...historyEndpoint(draw), p: 0.1, total: 1 }),
];

/** B. HTTP and bodies. */
const http: readonly DrawFault[] = [
  onAnyEndpoint(...each(Fault.status, 500, 502, 503, 504, 409, 429)),
  (draw) => {
    const endpoint = anyEndpoint(draw);
    const retryAfter = draw.one([...retryAfterForms, undefined]);
    const wait = draw.integer(1, 40) * 1000;
    return Fault.status(429, { ...endpoint, ...(retryAfter && { retryAfter, wait }), ...shortLived(draw) });
  },
  (draw) => Fault.status(400, { ...anyEndpoint(draw), p: 0.05, total: 1 }),
  (draw) =>
    Fault.status(draw.one([500, 503]), {
      from: draw.integer(0, 20) * 1000,
      to: draw.integer(1, 12) * MINUTE_MS,
    }),
  (draw) => Fault.refuse({ from: draw.integer(0, 5) * 1000, to: draw.integer(6, 300) * 1000 }),
  onAnyEndpoint(
    Fault.reset,
    Fault.hangUp,
    (when) => Fault.reset({ ...when, socket: "reused" }),
    (when) => Fault.hangUp({ ...when, socket: "reused" }),
  ),
  onAnyEndpoint(
    ...each(Fault.cut, "length", "close", "chunked", "utf8", "reset"),
    (when) => Fault.cut("reset", { ...when, at: 1 }),
    (when) => Fault.cut("length", { ...when, at: 300 }),
  ),
  onAnyEndpoint(...each(Fault.encoding, "cut", "plain", "crc", "br")),
  onAnyEndpoint(
    Fault.html,
    Fault.emptyBody,
    Fault.redirect,
    Fault.stall,
    (when) => Fault.stall({ ...when, at: "body" }),
    (when) => Fault.slowHeaders(when),
  ),
  onAnyEndpoint(
    Fault.bom,
    ...each(Fault.contentType, "text/plain", "text/html"),
    ...each(Fault.latency, 3_000, 45_000),
  ),
  onAnyEndpoint(
    ...each(
      Fault.envelope,
      "array",
      "string",
      "number",
      "null",
      "no-content",
      "content-object",
      "content-string",
    ),
  ),
  // No list counts as an empty one if the next response has none either.
  (draw) => {
    const create = draw.one([Fault.noContent, ...each(Fault.envelope, "content-null")]);
    return create({ ...anyEndpoint(draw), p: draw.one([0.1, 0.3, 1]), times: 1 });
  },
  (draw) => Fault.encoding("bomb", { ...anyEndpoint(draw), megabytes: 70, total: 1 }),
  onHistoryEndpoint(...each(Fault.stale, HOUR_MS, 10 * MINUTE_MS, 3 * DAY_MS)),
  // Not the bars of a first run: see `falsifiedRecords`.
  (draw) => Fault.lag(draw.one([90_000, 10 * MINUTE_MS, 3 * HOUR_MS]), { on: "/index-ticker" }),
];

/** C. Paging. */
const paging: readonly DrawFault[] = [
  onHistoryEndpoint(Fault.repeatPage, Fault.swapPages),
  onHistoryEndpoint(...each(Fault.cycle, 1, 2, 5, 50)),
  onHistoryEndpoint(...each(Fault.nextId, "null", "empty", "absent")),
  onHistoryEndpoint(Fault.emptyPage, ...each(Fault.deadCursor, 404, 400, "empty")),
  onHistoryEndpoint(
    ...each(Fault.order, "ascending", "shuffled"),
    ...each(Fault.foreignRows, 0),
    ...each(Fault.duplicateRow, "first", "last"),
  ),
  (draw) => Fault.sizeCap(draw.integer(10, 400), { ...historyEndpoint(draw), p: 0.5 }),
  (draw) => Fault.shrink(draw.one([0.5, 0.9, 1]), { on: draw.one(listEndpoints), times: 1 }),
  (draw) => Fault.status(404, { ...historyEndpoint(draw), p: 0.1, total: 1 }),
  (draw) => Fault.foreignRows(draw.integer(1, 2), historyEndpoint(draw)),
];

/** D. The same records in another notation. */
const payload: readonly DrawFault[] = [
  onAnyEndpoint(Fault.unknownFields, Fault.reorderedFields, Fault.duplicateKeys, Fault.protoKey, (when) =>
    Fault.deepNesting(2_000, when),
  ),
  (draw) => Fault.emptyList(draw.one(["null", "204"])),
  onHistoryEndpoint(
    ...each(Fault.decimals, "number", "exponent", "zeros"),
    ...each(Fault.timestamps, "us", "ns", "zero-offset", "epoch"),
    Fault.echoSecrets,
  ),
  (draw) => Fault.bigBody(1, { ...historyEndpoint(draw), p: 0.3, total: 2 }),
];

/** E. The live feed. Drawn only for schedules that follow it. */
const liveFeed: readonly DrawFault[] = [
  (draw) => Fault.upgradeStatus(draw.one([401, 429, 500, 503]), { p: 0.5, total: draw.integer(1, 3) }),
  (draw) =>
    Fault.dropConnection({
      code: draw.one([1001, 1006, 1011]),
      when: draw.one(["accept", "subscribe", "tick"]),
      p: 0.3,
      total: draw.integer(1, 3),
    }),
  (draw) => draw.one([Fault.mute, Fault.halfOpen])({ when: "tick", p: 0.1, total: 1 }),
  (draw) =>
    Fault.message(draw.one(["garbage", "not-json", "no-event", "trade", "array"]), {
      when: "tick",
      total: 2,
    }),
  (draw) => Fault.subscribed(draw.one(["never", "late", "twice"]), { by: 45_000, total: 1 }),
  (draw) =>
    draw.one([Fault.missingTick, Fault.duplicateTick, Fault.otherValue, Fault.binaryTick])({ p: 0.1 }),
  (draw) => Fault.lateTick(draw.one([20_000, 5 * MINUTE_MS]), { p: 0.2 }),
  (draw) => Fault.replay(draw.integer(1, 5)),
  // The socket stamps its ticks by another clock than REST.
  (draw) => Fault.shiftTimestamps(draw.one([137, -137, 2_000]), { on: "ticks" }),
  (draw) => {
    const notations = [Fault.unknownFields, Fault.reorderedFields, ...each(Fault.decimals, "number")];
    return draw.one([...notations, ...each(Fault.timestamps, "us")])({ on: "ticks" });
  },
];

/** H. What other implementations of the service do, for as long as the faults last. */
const otherImplementations: readonly DrawFault[] = [
  // One index falls silent on the socket.
  (draw) =>
    Fault.missingTick({ query: { name: draw.one(["BLX", "ELX"]) }, from: draw.integer(0, 10) * MINUTE_MS }),
  // An endpoint answers an empty list, or nothing, as null.
  (draw) => {
    const on = draw.one([...historyEndpoints, "/market-cap"]);
    const shape = draw.one(["content-null", "no-content"] as const);
    return Fault.envelope(shape, { on, to: draw.integer(1, 20) * MINUTE_MS });
  },
  // An endpoint is dead.
  (draw) => {
    const on = draw.one([...historyEndpoints, "/market-cap", "/exchange-ticker"]);
    const code = draw.one([500, 503]);
    return Fault.status(code, { on, to: draw.one([10 * MINUTE_MS, 2 * HOUR_MS, DAY_MS]) });
  },
  // Several are: with many requests in flight, this looks like an outage of the service.
  (draw) => {
    const to = draw.one([10 * MINUTE_MS, 2 * HOUR_MS, DAY_MS]);
    const dead = [...historyEndpoints, draw.one(["/exchange-ticker", "/derivatives/*"])];
    return dead.map((on) => Fault.status(500, { on, to }));
  },
  // The service accepts so many requests in a second, or so many at once.
  (draw) =>
    Fault.requestLimit(draw.integer(2, 40), {
      window: draw.one(["second", "sliding", "bucket"]),
      to: draw.integer(1, 30) * MINUTE_MS,
    }),
  (draw) => Fault.overload(draw.integer(1, 4), { to: draw.integer(1, 30) * MINUTE_MS }),
  // Most requests exceed a limit.
  (draw) =>
    Fault.status(429, {
      ...{ retryAfter: "seconds", wait: draw.integer(1, 20) * 1000 },
      p: 0.5,
      to: draw.integer(1, 30) * MINUTE_MS,
    }),
];

/** D. Records with wrong content. The client stores it as served, until a verification repairs it. */
const falsifiedRecords: readonly DrawFault[] = [
  (draw) => {
    const value = draw.one(["NaN", "", "-1", "0x10", "1,234", "1e400"]);
    return Fault.set("price", value, { on: "/index-ticker", rows: 0.05, ...shortLived(draw) });
  },
  (draw) => {
    const endpoint = historyEndpoint(draw);
    return Fault.decimals(draw.one(["long", "tiny"]), { ...endpoint, rows: 0.05, ...shortLived(draw) });
  },
  (draw) => {
    const field = draw.one(["timestamp", "price", "indexId", "id"]);
    return Fault.drop(field, { on: "/index-ticker", rows: 0.05, ...shortLived(draw) });
  },
  (draw) => {
    const form = draw.one(["no-zone", "offset", "leap", "midnight-24", 1970, 2099] as const);
    return Fault.timestamps(form, { on: "/index-ticker", rows: 0.04, ...shortLived(draw) });
  },
  (draw) => Fault.upsideDown({ on: "/ohlcv", rows: 0.1, ...shortLived(draw) }),
  (draw) => Fault.shrink(0.3, { ...historyEndpoint(draw), p: 0.1, total: 2 }),
  // Records that appear late, and records that the service no longer serves until the faults end.
  (draw) => {
    const ms = draw.one([5 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS]);
    return Fault.lateRows(ms, draw.one([0.02, 0.2]), historyEndpoint(draw));
  },
  (draw) => {
    const day = draw.integer(1, 3);
    const hour = draw.integer(0, 19);
    const time = (h: number) => `2026-03-0${day}T${String(h).padStart(2, "0")}:00:00Z`;
    return Fault.withdraw(time(hour), time(hour + draw.integer(1, 4)), { on: "/index-ticker" });
  },
  // On a first run nothing shows that a day's bar is an earlier state of it.
  (draw) => Fault.lag(draw.one([90_000, 10 * MINUTE_MS, 3 * HOUR_MS]), { on: "/ohlcv" }),
  // The service drops its oldest records until the faults end.
  (draw) => Fault.retention(draw.one([90 * MINUTE_MS, 12 * HOUR_MS, 3 * DAY_MS]), historyEndpoint(draw)),
];

/** One of two backends has only the newest records, or none has loaded older ones yet. */
const shallowHistories: readonly DrawFault[] = [
  (draw) => {
    const since = new Date(Date.parse("2026-02-27T00:00:00Z") + draw.integer(0, 90) * HOUR_MS).toISOString();
    return Fault.begins(since, { ...historyEndpoint(draw), p: draw.one([0.3, 0.5, 1]) });
  },
];

/** Faults whose effects outlive them, by what repairs them. The effects of all others end with the next run. */
const lastingFaults: Readonly<Record<Exclude<Recovery, "run">, readonly DrawFault[]>> = {
  night: shallowHistories,
  verify: falsifiedRecords,
};

/** A fault that always strikes, so that every schedule has one. */
const certainFault: DrawFault = (draw) => {
  const on = draw.one(["/index-ticker", "/index-ticker", "/asset"]);
  const bodies = [
    ...each(Fault.cut, "length"),
    ...each(Fault.envelope, "null"),
    ...each(Fault.encoding, "crc"),
  ];
  const others = [Fault.reset, Fault.hangUp, Fault.html, Fault.emptyBody];
  const create = draw.one([...each(Fault.status, 500, 503), ...bodies, ...others]);
  return create({ on, times: 1 });
};

export interface DrawnFaults {
  readonly faults: readonly Fault[];
  readonly recovery: Recovery;
  /** The faults of which no answer shows that it is wrong. */
  readonly lies: readonly Fault[];
}

interface FaultOptions {
  /** The schedule follows the live feed. */
  readonly isLive: boolean;
  /** The service has hundreds of daily bars of an index, not thousands. */
  readonly hasShortHistory: boolean;
}

/** Draws several faults from all groups. Most schedules falsify nothing. To draw a new fault, add it to a group. */
export function drawFaults(draw: SeededDraw, { isLive, hasShortHistory }: FaultOptions): DrawnFaults {
  const groups = [tokens, http, http, paging, paging, payload, otherImplementations];
  const harmless = groups.map((group) => draw.one(group));
  const faults = draw.sample(harmless, draw.integer(2, 5)).flatMap((create) => create(draw));
  if (isLive) faults.push(...draw.sample(liveFeed, draw.integer(1, 2)).flatMap((create) => create(draw)));
  // To verify fetches everything again: three times the cost of the others.
  const drawn = draw.chance(0.06)
    ? "verify"
    : draw.one<Recovery>(["run", "run", "run", "run", "run", "run", "night"]);
  const ends = findFalseEnds(faults);
  const recovery = drawn === "run" && ends.length > 0 ? "night" : drawn;
  const lasting = drawn === "run" ? [] : [draw.one(lastingFaults[drawn])(draw)].flat();
  faults.push(...lasting, ...[certainFault(draw)].flat());
  // Small pages make walks of many pages.
  if (draw.chance(0.6)) faults.push(Fault.sizeCap(draw.integer(15, 150), { on: "/index-ticker" }));
  if (draw.chance(0.4)) {
    const bars = draw.integer(150, 900);
    faults.push(Fault.sizeCap(hasShortHistory ? Math.ceil(bars / 7) : bars, { on: "/ohlcv" }));
  }
  if (draw.chance(0.5)) faults.push(Fault.latency(draw.integer(20, 900)));
  return { faults, recovery, lies: [...lasting, ...ends] };
}

/**
 * The client detects an empty page or a missing nextId. Both together in every response, in two runs, look like a service
 * without the series, and the client trusts that until the next night.
 */
function findFalseEnds(faults: readonly Fault[]): readonly Fault[] {
  const ends = faults.filter(({ name }) => name.startsWith("nextId "));
  const empty = faults.filter(({ name }) => name === "emptyPage");
  return ends.length > 0 && empty.length > 0 ? [...ends, ...empty] : [];
}

/** False for those that only change page size or latency of every response. */
export function isFault({ name, conditions }: Fault): boolean {
  return !["sizeCap", "latency"].includes(name) || conditions.p !== undefined;
}
