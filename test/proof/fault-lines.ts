import type { Draw } from "./draw.ts";

/** How a schedule's faults may be undone once the service is sound again. */
export type Healing = "run" | "next-day" | "verify";

type Line = (draw: Draw) => string;

const walked = ["/index-ticker", "/ohlcv"] as const;
const lists = ["/asset", "/market", "/exchange", "/market-cap"] as const;

/** Soon over: a few strikes on the same request, each of a chance. */
function soon(draw: Draw): string {
  return `p=${draw.one(["0.03", "0.1", "0.3", "1"])} times=${draw.whole(1, 3)}`;
}

function places(draw: Draw): string {
  return draw.one(["*", "*", "/index-ticker", "/ohlcv", "/asset", "/market-cap"]);
}

const onAny =
  (words: readonly string[]): Line =>
  (draw) =>
    `GET ${places(draw)} ${draw.one(words)} ${soon(draw)}`;

const onWalks =
  (words: readonly string[]): Line =>
  (draw) =>
    `GET ${draw.one(walked)} ${draw.one(words)} ${soon(draw)}`;

const retryAfter = "seconds imf rfc850 asctime past garbage negative exponent none".split(" ");

/** A. Tokens. */
const tokens: readonly Line[] = [
  (draw) =>
    `POST /oauth/token ${draw.one(["status 500", "status 503", "html", "reset", "no-content"])} times=2`,
  (draw) => `POST /oauth/token token-life ${draw.one(["31s", "2m", "10m"])} p=0.7`,
  (draw) => `POST /oauth/token expires-in ${draw.one(["0", "-5", "string", "missing", "1"])} times=3`,
  () => "POST /oauth/token same-token p=0.5",
  () => "POST /oauth/token odd-token",
  (draw) => `POST /oauth/token status ${draw.one([400, 401])} times=1`,
  (draw) =>
    `POST /oauth/token scope-without ${draw.one(["read:LX", "read:ohlcv", "read:market-cap"])} times=1`,
  (draw) => `GET ${places(draw)} revoke p=0.05 total=${draw.whole(1, 4)}`,
  (draw) => `GET ${draw.one(walked)} status 403 p=0.1 total=1`,
];

/** B. HTTP and bodies. */
const http: readonly Line[] = [
  (draw) => `GET ${places(draw)} status ${draw.one([500, 502, 503, 504, 409, 429])} ${soon(draw)}`,
  (draw) =>
    `GET ${places(draw)} rate-limit retry-after=${draw.one(retryAfter)} wait=${draw.whole(1, 40)}s ${soon(draw)}`,
  (draw) => `GET ${places(draw)} status 400 p=0.05 total=1`,
  (draw) => `GET * status ${draw.one([500, 503])} from=${draw.whole(0, 20)}s to=${draw.whole(1, 12)}m`,
  (draw) => `port refuse from=${draw.whole(0, 5)}s to=${draw.whole(6, 300)}s`,
  onAny(["reset", "hang-up", "reset reused", "hang-up reused"]),
  onAny([
    "cut length",
    "cut close",
    "cut chunked",
    "cut utf8",
    "cut reset",
    "cut reset at=1",
    "cut length at=300",
  ]),
  onAny(["encoding cut", "encoding plain", "encoding crc", "encoding br"]),
  onAny(["html", "empty-body", "no-content", "redirect", "stall", "stall body", "slow-headers"]),
  onAny(["bom", "content-type", 'content-type "text/html"', "latency 3s", "latency 45s"]),
  onAny(
    "array string number null no-content content-object content-null content-string"
      .split(" ")
      .map((shape) => `envelope ${shape}`),
  ),
  (draw) => `GET ${places(draw)} encoding bomb mb=70 total=1`,
  onWalks(["stale 1h", "stale 10m", "stale 3d"]),
];

/** C. Paging. */
const paging: readonly Line[] = [
  onWalks(["repeat-page", "swap-pages"]),
  onWalks(["next-id same", "next-id cycle", "next-id cycle length=5", "next-id cycle length=50"]),
  onWalks(["next-id null", "next-id empty", "next-id absent"]),
  onWalks(["empty-page", "dead-cursor 404", "dead-cursor 400", "dead-cursor empty"]),
  onWalks(["order ascending", "order shuffled", "foreign-rows", "duplicate-row first", "duplicate-row last"]),
  (draw) => `GET ${draw.one(walked)} size-cap ${draw.whole(10, 400)} p=0.5`,
  (draw) => `GET ${draw.one(lists)} shrink by=${draw.one(["0.5", "0.9", "1"])} times=1`,
];

/** D. What records say, as long as it means the same. */
const payload: readonly Line[] = [
  onAny(["unknown-fields", "reordered-fields", "duplicate-keys", "proto-key", "deep-nesting depth=2000"]),
  onWalks(["decimals number", "decimals exponent", "decimals zeros", "timestamps us", "timestamps ns"]),
  (draw) => `GET ${draw.one(walked)} big-body mb=1 p=0.3 total=2`,
];

/** D. Records that say something else: whatever is stored then is what the service said, until it is compared again. */
const lies: readonly Line[] = [
  (draw) =>
    `GET /index-ticker set price "${draw.one(["NaN", "", "-1", "0x10", "1,234", "1e400"])}" rows=0.05 ${soon(draw)}`,
  (draw) => `GET ${draw.one(walked)} decimals ${draw.one(["long", "tiny"])} rows=0.05 ${soon(draw)}`,
  (draw) =>
    `GET /index-ticker drop ${draw.one(["timestamp", "price", "indexId", "id"])} rows=0.05 ${soon(draw)}`,
  (draw) =>
    `GET /index-ticker timestamps ${draw.one("no-zone offset leap midnight-24 epoch 1970 2099".split(" "))} rows=0.04 ${soon(draw)}`,
  (draw) => `GET /ohlcv upside-down rows=0.1 ${soon(draw)}`,
  (draw) => `GET ${draw.one(walked)} shrink by=0.3 p=0.1 total=2`,
];

/** The service says that an index is none of its own: believed until the next night, where nothing of it is known yet. */
const denials: readonly Line[] = [
  (draw) => `GET ${draw.one(walked)} status 404 p=0.1 total=${draw.whole(1, 2)}`,
];

/** Always met, so that no schedule is a quiet day. */
const sure: Line = (draw) =>
  `GET ${draw.one(["/index-ticker", "/index-ticker", "/asset"])} ${draw.one(["status 500", "status 503", "reset", "hang-up", "cut length", "html", "empty-body", "envelope null", "encoding crc"])} times=1`;

export interface FaultScriptDrawn {
  readonly text: string;
  readonly healing: Healing;
}

/** A script of several lines over all groups; most schedules lie nowhere. */
export function drawFaults(draw: Draw): FaultScriptDrawn {
  const sound = [tokens, http, http, paging, paging, payload].map((group) => draw.one(group));
  const lines = draw.some(sound, draw.whole(2, 5)).map((line) => line(draw));
  const drawn = draw.one<Healing>(["run", "run", "run", "run", "run", "run", "next-day", "verify"]);
  const healing = drawn === "run" && isDoubleLie(lines) ? "next-day" : drawn;
  if (drawn === "verify") lines.push(draw.one(lies)(draw));
  if (drawn === "next-day") lines.push(draw.one(denials)(draw));
  lines.push(sure(draw));
  // Pages of a few rows make walks of many pages.
  if (draw.chance(0.6)) lines.push(`GET /index-ticker size-cap ${draw.whole(30, 300)}`);
  if (draw.chance(0.4)) lines.push(`GET /ohlcv size-cap ${draw.whole(150, 900)}`);
  if (draw.chance(0.5)) lines.push(`GET * latency ${draw.whole(20, 900)}ms`);
  return { text: lines.join("\n"), healing };
}

/**
 * An empty page and a missing nextId are both seen through. A service that says both at once, however often and whatever
 * it is asked about a series, cannot be told from one that has no such series; like a 404 it is believed until the next
 * night, unless something was seen of the series before.
 */
function isDoubleLie(lines: readonly string[]): boolean {
  const isEnd = (line: string) => / next-id (null|empty|absent) /.test(line);
  return lines.some(isEnd) && lines.some((line) => line.includes(" empty-page "));
}

/** Lines that only shape the service: a schedule in which nothing else struck has proved nothing. */
export function isFault(text: string): boolean {
  return !/^GET \S+ (size-cap \d+|latency \d+ms)$/.test(text);
}
