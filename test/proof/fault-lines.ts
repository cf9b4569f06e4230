import type { SeededDraw } from "./draw.ts";

/** What repairs the effects of a schedule's faults: the next run, the run of the next night, or a verification. */
export type Recovery = "run" | "night" | "verify";

type DrawLine = (draw: SeededDraw) => string;

const historyEndpoints = ["/index-ticker", "/ohlcv"] as const;
const listEndpoints = ["/asset", "/market", "/exchange", "/market-cap"] as const;

/** Options of a fault that strikes with some probability, at most a few times. */
function shortLived(draw: SeededDraw): string {
  return `p=${draw.one(["0.03", "0.1", "0.3", "1"])} times=${draw.integer(1, 3)}`;
}

function anyEndpoint(draw: SeededDraw): string {
  return draw.one(["*", "*", "/index-ticker", "/ohlcv", "/asset", "/market-cap"]);
}

const onAnyEndpoint =
  (words: readonly string[]): DrawLine =>
  (draw) =>
    `GET ${anyEndpoint(draw)} ${draw.one(words)} ${shortLived(draw)}`;

const onHistoryEndpoint =
  (words: readonly string[]): DrawLine =>
  (draw) =>
    `GET ${draw.one(historyEndpoints)} ${draw.one(words)} ${shortLived(draw)}`;

const retryAfterForms = "seconds imf rfc850 asctime past garbage negative exponent none".split(" ");

/** A. Tokens. */
const tokens: readonly DrawLine[] = [
  (draw) =>
    `POST /oauth/token ${draw.one(["status 500", "status 503", "html", "reset", "no-content"])} times=2`,
  (draw) => `POST /oauth/token token-life ${draw.one(["31s", "2m", "10m"])} p=0.7`,
  (draw) => `POST /oauth/token expires-in ${draw.one(["0", "-5", "string", "missing", "1"])} times=3`,
  () => "POST /oauth/token same-token p=0.5",
  () => "POST /oauth/token odd-token",
  (draw) => `POST /oauth/token status ${draw.one([400, 401])} times=1`,
  (draw) =>
    `POST /oauth/token scope-without ${draw.one(["read:LX", "read:ohlcv", "read:market-cap"])} times=1`,
  (draw) => `GET ${anyEndpoint(draw)} revoke p=0.05 total=${draw.integer(1, 4)}`,
  (draw) => `GET ${draw.one(historyEndpoints)} status 403 p=0.1 total=1`,
];

/** B. HTTP and bodies. */
const http: readonly DrawLine[] = [
  (draw) => `GET ${anyEndpoint(draw)} status ${draw.one([500, 502, 503, 504, 409, 429])} ${shortLived(draw)}`,
  (draw) =>
    `GET ${anyEndpoint(draw)} rate-limit retry-after=${draw.one(retryAfterForms)} wait=${draw.integer(1, 40)}s ${shortLived(draw)}`,
  (draw) => `GET ${anyEndpoint(draw)} status 400 p=0.05 total=1`,
  (draw) => `GET * status ${draw.one([500, 503])} from=${draw.integer(0, 20)}s to=${draw.integer(1, 12)}m`,
  (draw) => `port refuse from=${draw.integer(0, 5)}s to=${draw.integer(6, 300)}s`,
  onAnyEndpoint(["reset", "hang-up", "reset reused", "hang-up reused"]),
  onAnyEndpoint([
    "cut length",
    "cut close",
    "cut chunked",
    "cut utf8",
    "cut reset",
    "cut reset at=1",
    "cut length at=300",
  ]),
  onAnyEndpoint(["encoding cut", "encoding plain", "encoding crc", "encoding br"]),
  onAnyEndpoint(["html", "empty-body", "redirect", "stall", "stall body", "slow-headers"]),
  onAnyEndpoint(["bom", "content-type", 'content-type "text/html"', "latency 3s", "latency 45s"]),
  onAnyEndpoint(
    "array string number null no-content content-object content-string"
      .split(" ")
      .map((shape) => `envelope ${shape}`),
  ),
  // No list counts as an empty one if the next response has none either.
  (draw) =>
    `GET ${anyEndpoint(draw)} ${draw.one(["no-content", "envelope content-null"])} p=${draw.one(["0.1", "0.3", "1"])} times=1`,
  (draw) => `GET ${anyEndpoint(draw)} encoding bomb mb=70 total=1`,
  onHistoryEndpoint(["stale 1h", "stale 10m", "stale 3d"]),
  // Not the bars of a first run: see `falsifiedRecords`.
  (draw) => `GET /index-ticker lag ${draw.one(["90s", "10m", "3h"])}`,
];

/** C. Paging. */
const paging: readonly DrawLine[] = [
  onHistoryEndpoint(["repeat-page", "swap-pages"]),
  onHistoryEndpoint(["next-id same", "next-id cycle", "next-id cycle length=5", "next-id cycle length=50"]),
  onHistoryEndpoint(["next-id null", "next-id empty", "next-id absent"]),
  onHistoryEndpoint(["empty-page", "dead-cursor 404", "dead-cursor 400", "dead-cursor empty"]),
  onHistoryEndpoint([
    "order ascending",
    "order shuffled",
    "foreign-rows",
    "duplicate-row first",
    "duplicate-row last",
  ]),
  (draw) => `GET ${draw.one(historyEndpoints)} size-cap ${draw.integer(10, 400)} p=0.5`,
  (draw) => `GET ${draw.one(listEndpoints)} shrink by=${draw.one(["0.5", "0.9", "1"])} times=1`,
  (draw) => `GET ${draw.one(historyEndpoints)} status 404 p=0.1 total=1`,
  (draw) => `GET ${draw.one(historyEndpoints)} foreign-rows rows=${draw.integer(1, 2)}`,
];

/** D. The same records in another notation. */
const payload: readonly DrawLine[] = [
  onAnyEndpoint([
    "unknown-fields",
    "reordered-fields",
    "duplicate-keys",
    "proto-key",
    "deep-nesting depth=2000",
  ]),
  onHistoryEndpoint([
    "decimals number",
    "decimals exponent",
    "decimals zeros",
    "timestamps us",
    "timestamps ns",
    "timestamps zero-offset",
    "timestamps epoch",
    "echo-secrets",
  ]),
  (draw) => `GET ${draw.one(historyEndpoints)} big-body mb=1 p=0.3 total=2`,
];

/** E. The live feed. Drawn only for schedules that follow it. */
const liveFeed: readonly DrawLine[] = [
  (draw) => `ws upgrade-status ${draw.one([401, 429, 500, 503])} p=0.5 total=${draw.integer(1, 3)}`,
  (draw) =>
    `ws drop-connection ${draw.one([1001, 1006, 1011])} on=${draw.one(["accept", "subscribe", "tick"])} p=0.3 total=${draw.integer(1, 3)}`,
  (draw) => `ws ${draw.one(["mute", "half-open"])} on=tick p=0.1 total=1`,
  (draw) => `ws message ${draw.one(["garbage", "not-json", "no-event", "trade", "array"])} on=tick total=2`,
  (draw) => `ws subscribed ${draw.one(["never", "late by=45s", "twice"])} total=1`,
  (draw) => `ws ${draw.one(["missing-tick", "duplicate-tick", "other-value", "binary-tick"])} p=0.1`,
  (draw) => `ws late-tick by=${draw.one(["20s", "5m"])} p=0.2`,
  (draw) => `ws replay ticks=${draw.integer(1, 5)}`,
  // The socket stamps its ticks by another clock than REST.
  (draw) => `ws shift-timestamps by=${draw.one(["137ms", "-137ms", "2s"])}`,
];

/** H. What other implementations of the service do, for as long as the faults last. */
const otherImplementations: readonly DrawLine[] = [
  // One index falls silent on the socket.
  (draw) => `ws missing-tick query=name=${draw.one(["BLX", "ELX"])} from=${draw.integer(0, 10)}m`,
  // An endpoint answers an empty list, or nothing, as null.
  (draw) =>
    `GET ${draw.one([...historyEndpoints, "/market-cap"])} envelope ${draw.one(["content-null", "no-content"])} to=${draw.integer(1, 20)}m`,
  // An endpoint is dead.
  (draw) =>
    `GET ${draw.one([...historyEndpoints, "/market-cap", "/exchange-ticker"])} status ${draw.one([500, 503])} to=${draw.one(["10m", "2h", "1d"])}`,
  // Several are: with many requests in flight, this looks like an outage of the service.
  (draw) => {
    const to = draw.one(["10m", "2h", "1d"]);
    const dead = [...historyEndpoints, draw.one(["/exchange-ticker", "/derivatives/*"])];
    return dead.map((path) => `GET ${path} status 500 to=${to}`).join("\n");
  },
  // The service accepts so many requests in a second, or so many at once.
  (draw) =>
    `GET * request-limit rate=${draw.integer(2, 40)} window=${draw.one(["second", "sliding", "bucket"])} to=${draw.integer(1, 30)}m`,
  (draw) => `GET * overload above=${draw.integer(1, 4)} to=${draw.integer(1, 30)}m`,
  // Most requests exceed a limit.
  (draw) =>
    `GET * rate-limit retry-after=seconds wait=${draw.integer(1, 20)}s p=0.5 to=${draw.integer(1, 30)}m`,
];

/** D. Records with wrong content. The client stores it as served, until a verification repairs it. */
const falsifiedRecords: readonly DrawLine[] = [
  (draw) =>
    `GET /index-ticker set price "${draw.one(["NaN", "", "-1", "0x10", "1,234", "1e400"])}" rows=0.05 ${shortLived(draw)}`,
  (draw) =>
    `GET ${draw.one(historyEndpoints)} decimals ${draw.one(["long", "tiny"])} rows=0.05 ${shortLived(draw)}`,
  (draw) =>
    `GET /index-ticker drop ${draw.one(["timestamp", "price", "indexId", "id"])} rows=0.05 ${shortLived(draw)}`,
  (draw) =>
    `GET /index-ticker timestamps ${draw.one("no-zone offset leap midnight-24 1970 2099".split(" "))} rows=0.04 ${shortLived(draw)}`,
  (draw) => `GET /ohlcv upside-down rows=0.1 ${shortLived(draw)}`,
  (draw) => `GET ${draw.one(historyEndpoints)} shrink by=0.3 p=0.1 total=2`,
  // Records that appear late, and records that the service no longer serves until the faults end.
  (draw) =>
    `GET ${draw.one(historyEndpoints)} late-rows by=${draw.one(["5m", "1h", "6h"])} share=${draw.one(["0.02", "0.2"])}`,
  (draw) => {
    const day = draw.integer(1, 3);
    const hour = draw.integer(0, 19);
    const time = (h: number) => `2026-03-0${day}T${String(h).padStart(2, "0")}:00:00Z`;
    return `GET /index-ticker withdraw since=${time(hour)} until=${time(hour + draw.integer(1, 4))}`;
  },
  // On a first run nothing shows that a day's bar is an earlier state of it.
  (draw) => `GET /ohlcv lag ${draw.one(["90s", "10m", "3h"])}`,
  // The service drops its oldest records until the faults end.
  (draw) => `GET ${draw.one(historyEndpoints)} retention ${draw.one(["90m", "12h", "3d"])}`,
];

/** One of two backends has only the newest records, or none has loaded older ones yet. */
const shallowHistories: readonly DrawLine[] = [
  (draw) => {
    const since = new Date(
      Date.parse("2026-02-27T00:00:00Z") + draw.integer(0, 90) * 3_600_000,
    ).toISOString();
    return `GET ${draw.one(historyEndpoints)} begins since=${since} p=${draw.one(["0.3", "0.5", "1"])}`;
  },
];

/** Faults whose effects outlive them, by what repairs them. The effects of all others end with the next run. */
const lastingFaults: Readonly<Record<Exclude<Recovery, "run">, readonly DrawLine[]>> = {
  night: shallowHistories,
  verify: falsifiedRecords,
};

/** A fault that always strikes, so that every schedule has one. */
const certainFault: DrawLine = (draw) =>
  `GET ${draw.one(["/index-ticker", "/index-ticker", "/asset"])} ${draw.one(["status 500", "status 503", "reset", "hang-up", "cut length", "html", "empty-body", "envelope null", "encoding crc"])} times=1`;

export interface DrawnFaults {
  readonly text: string;
  readonly recovery: Recovery;
  /** The lines of which no answer shows that it is wrong. */
  readonly lies: readonly string[];
}

interface FaultOptions {
  /** The schedule follows the live feed. */
  readonly isLive: boolean;
  /** The service has hundreds of daily bars of an index, not thousands. */
  readonly hasShortHistory: boolean;
}

/**
 * Draws a fault script of several lines from all groups. Most scripts falsify nothing. To draw a new fault, add its line
 * to a group.
 */
export function drawFaults(draw: SeededDraw, { isLive, hasShortHistory }: FaultOptions): DrawnFaults {
  const groups = [tokens, http, http, paging, paging, payload, otherImplementations];
  const harmless = groups.map((group) => draw.one(group));
  const lines = draw.sample(harmless, draw.integer(2, 5)).map((line) => line(draw));
  if (isLive) lines.push(...draw.sample(liveFeed, draw.integer(1, 2)).map((line) => line(draw)));
  // To verify fetches everything again: three times the cost of the others.
  const drawn = draw.chance(0.06)
    ? "verify"
    : draw.one<Recovery>(["run", "run", "run", "run", "run", "run", "night"]);
  const ends = findFalseEnds(lines);
  const recovery = drawn === "run" && ends.length > 0 ? "night" : drawn;
  const lasting = drawn === "run" ? [] : [draw.one(lastingFaults[drawn])(draw)];
  lines.push(...lasting);
  lines.push(certainFault(draw));
  // Small pages make walks of many pages.
  if (draw.chance(0.6)) lines.push(`GET /index-ticker size-cap ${draw.integer(15, 150)}`);
  if (draw.chance(0.4)) {
    const bars = draw.integer(150, 900);
    lines.push(`GET /ohlcv size-cap ${hasShortHistory ? Math.ceil(bars / 7) : bars}`);
  }
  if (draw.chance(0.5)) lines.push(`GET * latency ${draw.integer(20, 900)}ms`);
  return { text: lines.join("\n"), recovery, lies: [...lasting, ...ends] };
}

/**
 * The client detects an empty page or a missing nextId. Both together in every response, in two runs, look like a service
 * without the series, and the client trusts that until the next night.
 */
function findFalseEnds(lines: readonly string[]): readonly string[] {
  const ends = lines.filter((line) => / next-id (null|empty|absent) /.test(line));
  const empty = lines.filter((line) => line.includes(" empty-page "));
  return ends.length > 0 && empty.length > 0 ? [...ends, ...empty] : [];
}

/** False for script lines that only change page size or latency: they do not count as faults. */
export function isFault(text: string): boolean {
  return !/^GET \S+ (size-cap \d+|latency \d+ms)$/.test(text);
}
