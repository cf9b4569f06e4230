/**
 * Every word that a fault script knows, with its parameters: the parser, the help text and the tests read this
 * one table. The first parameter of a word may be written without its name: `status 503` is `status code=503`.
 */
export type FaultGroup = "tokens" | "http" | "paging" | "payload" | "websocket";

/**
 * The moment at which a word is drawn: an HTTP request; a websocket's upgrade, accept, subscribe or unsubscribe
 * message, or one tick; or the port, when the script is set.
 */
export type FaultMoment = "request" | "upgrade" | "accept" | "subscribe" | "unsubscribe" | "tick" | "port";

export interface FaultParameter {
  kind: "number" | "duration" | "text" | "choice" | "rows";
  choices?: readonly string[];
  /** Left out: the parameter must be given. */
  standard?: string;
}

export interface FaultWord {
  word: string;
  group: FaultGroup;
  moments: readonly FaultMoment[];
  parameters: Readonly<Record<string, FaultParameter>>;
  does: string;
}

const number = (standard?: number): FaultParameter => ({ kind: "number", ...given(standard?.toString()) });
const duration = (standard?: string): FaultParameter => ({ kind: "duration", ...given(standard) });
const text = (standard?: string): FaultParameter => ({ kind: "text", ...given(standard) });
const choice = (choices: string, standard?: string): FaultParameter => ({
  kind: "choice",
  choices: choices.split(" "),
  ...given(standard),
});
const given = (standard: string | undefined) => (standard === undefined ? {} : { standard });

const retryAfter = {
  "retry-after": choice("seconds imf rfc850 asctime past far garbage negative huge exponent none", "none"),
  wait: duration("7s"),
};
/** Which rows of an answer, or which ticks, a payload word mangles: all, the first, the last, or a share drawn by record. */
const rows: Record<string, FaultParameter> = { rows: { kind: "rows", standard: "all" } };
const connection = { on: choice("accept subscribe tick", "accept"), in: duration("0s") };

const http: readonly FaultMoment[] = ["request"];
const records: readonly FaultMoment[] = ["request", "tick"];
const lifetime: readonly FaultMoment[] = ["accept", "subscribe", "tick"];

function word(
  name: string,
  group: FaultGroup,
  moments: readonly FaultMoment[],
  parameters: Record<string, FaultParameter>,
  does: string,
): FaultWord {
  return { word: name, group, moments, parameters, does };
}

export const faultWords: readonly FaultWord[] = [
  word(
    "expires-in",
    "tokens",
    http,
    { said: text() },
    "says this expires_in (a number, `string`, `missing`); the token lives on as before",
  ),
  word(
    "token-life",
    "tokens",
    http,
    { life: duration() },
    "issues a token that lives this long, and says so",
  ),
  word(
    "same-token",
    "tokens",
    http,
    {},
    "returns the token issued before for this audience, with its remaining seconds",
  ),
  word("odd-token", "tokens", http, {}, "issues a token with the characters + / = & in it"),
  word("scope-without", "tokens", http, { scope: text() }, "issues a token that lacks this scope"),
  word("revoke", "tokens", http, {}, "revokes the token that the request carries: 401 now and ever after"),

  word(
    "status",
    "http",
    http,
    { code: number(), ...retryAfter },
    "answers with this status and the service's error body",
  ),
  word("rate-limit", "http", http, { ...retryAfter }, "answers 429, with Retry-After in the form asked for"),
  word(
    "redirect",
    "http",
    http,
    { to: text("http://localhost:1/elsewhere"), code: number(307) },
    "redirects to another address",
  ),
  word("latency", "http", http, { by: duration() }, "answers whole, but later"),
  word(
    "slow-headers",
    "http",
    http,
    { by: duration("60s") },
    "accepts the request and sends the headers only after this long",
  ),
  word(
    "drip",
    "http",
    http,
    { every: duration("5s"), bytes: number(1) },
    "sends the body a few bytes at a time",
  ),
  word(
    "stall",
    "http",
    http,
    { at: choice("start body", "start") },
    "never answers, or stops for ever in the middle of the body",
  ),
  word(
    "reset",
    "http",
    http,
    { socket: choice("any reused", "any") },
    "resets the connection instead of answering",
  ),
  word(
    "hang-up",
    "http",
    http,
    { socket: choice("any reused", "any") },
    "closes the connection instead of answering",
  ),
  word(
    "cut",
    "http",
    http,
    { how: choice("length close chunked utf8 reset", "length"), at: number(-1) },
    "truncates the body after `at` bytes (half of it, unless told)",
  ),
  word(
    "encoding",
    "http",
    http,
    { how: choice("cut bomb plain crc br"), mb: number(5000) },
    "truncated gzip, a gzip bomb of `mb`, gzip announced over a plain body, a wrong CRC, unannounced brotli",
  ),
  word("html", "http", http, {}, "answers 200 with a captive portal's page"),
  word("empty-body", "http", http, {}, "answers 200 with no body"),
  word("no-content", "http", http, {}, "answers 204"),
  word("bom", "http", http, {}, "puts a byte order mark before the JSON"),
  word("content-type", "http", http, { type: text("text/plain") }, "mislabels the JSON"),
  word(
    "envelope",
    "http",
    http,
    { shape: choice("array string number null no-content content-object content-null content-string") },
    "answers JSON of another shape than promised",
  ),
  word(
    "stale",
    "http",
    http,
    { age: duration("1h") },
    "answers as a cache would: the page of long ago, with its old Date and its Age",
  ),
  word(
    "refuse",
    "http",
    ["port"],
    {},
    "closes the port and every connection between `from` and `to`: connection refused",
  ),

  word("repeat-page", "paging", http, {}, "answers a cursor with the page that gave that cursor"),
  word("swap-pages", "paging", http, {}, "swaps the rows of this page and of the next"),
  word(
    "next-id",
    "paging",
    http,
    { is: choice("same cycle null empty absent"), length: number(2) },
    "nextId: the same for ever, a cycle of `length`, null, an empty string, or none",
  ),
  word("empty-page", "paging", http, {}, "answers no rows, but the right nextId"),
  word(
    "size-cap",
    "paging",
    http,
    { rows: number() },
    "gives at most so many rows a page, whatever `size` says",
  ),
  word(
    "dead-cursor",
    "paging",
    http,
    { answer: choice("400 404 empty", "404") },
    "knows startAfter no more: 400, 404, or an empty last page",
  ),
  word("foreign-rows", "paging", http, {}, "ignores indexId: the page holds other series' rows too"),
  word(
    "order",
    "paging",
    http,
    { is: choice("ascending shuffled", "ascending") },
    "rows in another order than newest first",
  ),
  word("torn", "paging", http, {}, "the first half of the rows is one refresh older than the rest"),
  word("shrink", "paging", http, { by: number(0.9) }, "leaves out this share of the rows"),
  word("duplicate-row", "paging", http, { row: choice("first last", "last") }, "sends a row twice"),

  word("unknown-fields", "payload", records, rows, "adds properties that nobody has announced"),
  word("reordered-fields", "payload", records, rows, "reverses the order of the properties"),
  word(
    "duplicate-keys",
    "payload",
    records,
    rows,
    "names every property twice; the first time with a wrong value",
  ),
  word("proto-key", "payload", records, rows, "adds __proto__ and constructor as properties"),
  word(
    "decimals",
    "payload",
    records,
    { as: choice("number exponent zeros long tiny"), ...rows },
    "decimals as numbers, with an exponent, with spare zeros (the same value); with 30 digits, or 1e-18 (another value)",
  ),
  word(
    "set",
    "payload",
    records,
    { field: text(), value: text(""), as: choice("string json", "string"), ...rows },
    "sets a property, to a string or to any JSON",
  ),
  word(
    "drop",
    "payload",
    records,
    { field: text(), ...rows },
    "leaves a property out: of the records, or of the envelope when it stands there",
  ),
  word(
    "timestamps",
    "payload",
    records,
    { as: choice("us ns no-zone offset leap midnight-24 epoch 1970 2099"), ...rows },
    "timestamps in another form: the first, second and fourth name the same moment",
  ),
  word("upside-down", "payload", records, rows, "swaps high and low"),
  word("big-body", "payload", http, { mb: number(50) }, "repeats the rows until the body is this big"),
  word("deep-nesting", "payload", http, { depth: number(100_000) }, "adds a property nested this deep"),

  word(
    "upgrade-status",
    "websocket",
    ["upgrade"],
    { code: number(), ...retryAfter },
    "refuses the upgrade with this HTTP status",
  ),
  word("upgrade-stall", "websocket", ["upgrade"], {}, "never answers the upgrade"),
  word(
    "connected",
    "websocket",
    ["accept"],
    { is: choice("never twice late"), by: duration("5s") },
    "CONNECTED never comes, comes twice, or late",
  ),
  word(
    "drop-connection",
    "websocket",
    lifetime,
    { code: number(1006), ...connection },
    "ends the connection with this close code; 1006: without a close frame",
  ),
  word("mute", "websocket", lifetime, connection, "no ticks any more; everything else goes on"),
  word(
    "half-open",
    "websocket",
    lifetime,
    connection,
    "no frame any more and no end either, as after a pulled cable",
  ),
  word(
    "ping-storm",
    "websocket",
    lifetime,
    { every: duration("100ms"), ...connection },
    "a JSON PING every so often",
  ),
  word(
    "message",
    "websocket",
    lifetime,
    {
      is: choice(
        "binary garbage utf8 oversized fragments deflated trade no-event array null string number not-json error",
      ),
      code: text("500"),
      as: choice("string number none", "string"),
      bytes: number(2 ** 21),
      ...connection,
    },
    "one message out of turn; `error` takes code= and as=",
  ),
  word(
    "subscribed",
    "websocket",
    ["subscribe"],
    { is: choice("never other late twice"), by: duration("5s") },
    "SUBSCRIBED_* never comes, comes for another subscription, after the ticks, or twice",
  ),
  word(
    "error",
    "websocket",
    ["subscribe", "unsubscribe"],
    { code: text("500"), as: choice("string number none", "string") },
    "answers the message with an ERROR of this code, which may be a number or missing",
  ),
  word("ignore-unsubscribe", "websocket", ["unsubscribe"], {}, "goes on with the ticks"),
  word(
    "late-unsubscribe",
    "websocket",
    ["unsubscribe"],
    { by: duration("60s") },
    "goes on with the ticks for so long",
  ),
  word(
    "replay",
    "websocket",
    ["subscribe"],
    { ticks: number(5) },
    "sends each series' last ticks again after SUBSCRIBED_*",
  ),
  word("duplicate-tick", "websocket", ["tick"], {}, "sends the tick twice"),
  word("missing-tick", "websocket", ["tick"], {}, "does not send the tick"),
  word("late-tick", "websocket", ["tick"], { by: duration("45s") }, "sends the tick after later ones"),
  word(
    "other-value",
    "websocket",
    ["tick"],
    {},
    "another price, and another id, than REST has for the same moment",
  ),
  word("binary-tick", "websocket", ["tick"], {}, "sends the tick's JSON in a binary frame"),
];

/** One line per word, for help texts. */
export function describeFaultWords(): string {
  return faultWords
    .map(({ word: name, group, parameters, does }) => {
      const usage = Object.entries(parameters).map(([key, { choices, kind, standard }]) => {
        const values = choices ? choices.join("|") : kind;
        return standard === undefined ? `${key}=${values}` : `[${key}=${values}]`;
      });
      return `${[name, ...usage].join(" ")}\n    ${group}: ${does}`;
    })
    .join("\n");
}
