/**
 * The kind of event on which a fault triggers: an HTTP request; the upgrade, accept, subscribe or unsubscribe of a
 * websocket; a live tick; or the port, when the script is set.
 */
export type FaultEventKind = "request" | "upgrade" | "accept" | "subscribe" | "unsubscribe" | "tick" | "port";

interface FaultParameter {
  /** `rows` selects the rows or ticks that a payload fault changes: all, the first, the last, or a random share. */
  kind: "number" | "duration" | "text" | "choice" | "rows";
  choices?: readonly string[];
  /** Absent: the parameter is required. */
  defaultValue?: string;
}

export interface FaultDefinition {
  name: string;
  group: string;
  eventKinds: readonly FaultEventKind[];
  parameters: Readonly<Record<string, FaultParameter>>;
  description: string;
}

const RETRY_AFTER =
  "retry-after=seconds|imf|rfc850|asctime|past|garbage|negative|exponent|none:none wait=duration:7s";
const CONNECTION = "on=accept|subscribe|tick:accept in=duration:0s";

/**
 * All faults, by group and the events on which they trigger. A parameter is `name=kind` or `name=choice|choice`, with
 * `:default` if it is optional. The first ones may be written without their names: `status 503` is `status code=503`.
 */
const CATALOGUE = `
# tokens on request
expires-in said=text
  sends this expires_in (a number, \`string\`, \`missing\`); the real lifetime is unchanged
token-life life=duration
  issues a token with this lifetime
same-token
  returns the previous token of this audience, with its remaining seconds
odd-token
  issues a token that contains the characters + / = &
scope-without scope=text
  issues a token that lacks this scope
scope-form is=upper|unknown
  states the scopes in upper case or by unknown names; the token has them all the same
revoke
  revokes the token of the request: 401 now and later

# http on request
status code=number ${RETRY_AFTER}
  responds with this status and the error body of the service
rate-limit ${RETRY_AFTER}
  responds with 429 and Retry-After in this format
request-limit rate=number window=second|sliding|bucket:second ${RETRY_AFTER}
  responds with 429 to what exceeds this many requests per second
overload above=number code=number:503
  responds with this status while more requests are in flight
redirect location=text:http://localhost:1/elsewhere code=number:307
  redirects to another address
latency by=duration
  delays the response
slow-headers by=duration:60s
  sends the status line at once and the rest after this delay
drip every=duration:5s bytes=number:1
  sends the body a few bytes at a time
stall at=start|body:start
  never responds, or stops in the middle of the body
reset socket=any|reused:any
  resets the connection instead of responding
hang-up socket=any|reused:any
  closes the connection instead of responding
cut how=length|close|chunked|utf8|reset:length at=number:-1 above=number:0
  truncates a body of more than \`above\` bytes after \`at\` bytes (default: half of it)
encoding how=cut|bomb|plain|crc|br mb=number:5000
  sends truncated gzip, a gzip bomb of \`mb\`, a plain body labelled gzip, a wrong CRC, or brotli that the client did not accept
html
  responds with 200 and the page of a captive portal
empty-body
  responds with 200 and an empty body
no-content
  responds with 204
bom
  puts a byte order mark before the JSON
content-type type=text:text/plain
  sends the JSON with this content type
envelope shape=array|string|number|null|no-content|content-object|content-null|content-string
  responds with JSON of an unexpected shape
stale age=duration:1h
  responds like a stale cache: the old page, with its old Date and an Age
lag by=duration:30m
  responds with the records of this long ago, with the present Date: REST publishes late

# http on port
refuse
  closes the port and all connections between \`from\` and \`to\`: connection refused

# paging on request
repeat-page
  responds to a cursor with the page that returned that cursor
swap-pages
  swaps the rows of this page and the next
next-id is=same|cycle|null|empty|absent length=number:2
  sets nextId: always the same, a cycle of \`length\`, null, an empty string, or absent
empty-page
  sends no rows, but the correct nextId
size-cap rows=number
  limits the rows per page, even if \`size\` is larger
page-limit rows=number code=number:413
  responds with this status if \`size\` is larger
dead-cursor answer=400|404|empty:404
  rejects startAfter: 400, 404, or an empty last page
foreign-rows rows=number:0
  adds so many rows of another series to the page; 0: ignores indexId
order is=ascending|shuffled:ascending
  sends the rows in another order than newest first
shrink by=number:0.9
  drops this share of the rows
late-rows by=duration:5m share=number:0.1
  leaves out this share of the rows until they are this old; always the same rows
withdraw since=text until=text
  serves no records of [since, until), as if they had never been published; the page is filled with older ones
second-records rows=number:2000
  lists a second record of each moment behind the first, with another id and other figures; at most \`rows\` to a page
retention age=duration:30d
  serves no records older than this, as a service that stores them for a shorter time
begins since=text:2026-01-01T00:00:00Z
  serves no records older than this time, as a service that has not loaded them yet
duplicate-row row=first|last:last
  sends a row twice

# payload on request tick
unknown-fields rows=rows:all
  adds undocumented properties
reordered-fields rows=rows:all
  reverses the order of the properties
duplicate-keys rows=rows:all
  sends every property twice, the first time with a wrong value
proto-key rows=rows:all
  adds __proto__ and constructor as properties
decimals as=number|exponent|zeros|long|tiny rows=rows:all
  formats decimals as numbers, with an exponent or trailing zeros (same value); with 30 digits, or as 1e-18 (other value)
set field=text value=text: as=string|json:string rows=rows:all
  sets a property to a string or to any JSON
echo-secrets field=text:debug as=plain|nested|escaped|url:plain rows=rows:all
  sets a property to the client's secret and its newest tokens
drop field=text rows=rows:all
  removes a property from the envelope, or else from the records
timestamps as=us|ns|no-zone|offset|zero-offset|leap|midnight-24|epoch|epoch-text|1970|2099 rows=rows:all
  formats timestamps differently; us, ns, offset, zero-offset, epoch and epoch-text mean the same time
shift-timestamps by=duration rows=rows:all
  moves the timestamps by this duration, which may be negative: a socket with an offset, a record from the future
upside-down rows=rows:all
  swaps high and low

# payload on request
big-body mb=number:50
  repeats the rows until the body has this size
deep-nesting depth=number:100000
  adds a property with this nesting depth

# websocket on upgrade
upgrade-status code=number ${RETRY_AFTER}
  rejects the upgrade with this HTTP status
upgrade-stall
  never responds to the upgrade

# websocket on accept
connected is=never|twice|late by=duration:5s
  sends CONNECTED never, twice, or late

# websocket on accept subscribe tick
drop-connection code=number:1006 ${CONNECTION}
  closes the connection with this close code; 1006: without a close frame
mute ${CONNECTION}
  sends no more ticks, but everything else
half-open ${CONNECTION}
  sends no more frames and does not close, as after a network failure
ping-storm every=duration:100ms ${CONNECTION}
  sends a JSON PING at this interval
message is=garbage|utf8|oversized|fragments|deflated|trade|no-event|array|null|not-json bytes=number:2097152 ${CONNECTION}
  sends one unexpected message

# websocket on subscribe
subscribed is=never|other|late|twice by=duration:5s
  sends SUBSCRIBED_* never, for another subscription, after the ticks, or twice

# websocket on subscribe unsubscribe
error code=text:500 as=string|number|none:string
  responds with an ERROR of this code, which may be a number or missing

# websocket on subscribe
replay ticks=number:5
  sends the last ticks of each series again after SUBSCRIBED_*

# websocket on tick
duplicate-tick
  sends the tick twice
missing-tick
  does not send the tick
late-tick by=duration:45s
  sends the tick after later ones
other-value
  sends another price and id than REST for the same timestamp
binary-tick
  sends the JSON of the tick in a binary frame
`;

/** The parser, the help text and the tests read this list. */
export const faultDefinitions: readonly FaultDefinition[] = CATALOGUE.trim()
  .split(/\n(?:\n|$)/)
  .flatMap(parseSection);

function parseSection(section: string): FaultDefinition[] {
  const [heading = "", ...faults] = section.split(/\n(?! )/);
  const [, group = "", events = ""] = /^# (\w+) on (.*)$/.exec(heading) ?? [];
  const eventKinds = events.split(" ") as FaultEventKind[];
  return faults.map((fault) => {
    const [usage = "", description = ""] = fault.split("\n  ");
    const [name = "", ...parameters] = usage.split(" ");
    return {
      name,
      group,
      eventKinds,
      parameters: Object.fromEntries(parameters.map(parseParameter)),
      description,
    };
  });
}

function parseParameter(text: string): [string, FaultParameter] {
  const [, name = "", type = "", defaultValue] = /^([^=]+)=([^:]+)(?::(.*))?$/.exec(text) ?? [];
  const optional = defaultValue === undefined ? {} : { defaultValue };
  if (type.includes("|")) return [name, { kind: "choice", choices: type.split("|"), ...optional }];
  return [name, { kind: type as FaultParameter["kind"], ...optional }];
}

/** The conditions that any line can have. */
export const faultConditions: Readonly<Record<string, string>> = {
  p: "the probability per event: p=0.05",
  times: "the maximum number of triggers on the same request",
  after: "the number of times that the same request passes without the fault first",
  total:
    "the maximum number of triggers of this line; the only condition that depends on the order of requests",
  from: "starts this long after the script was set: from=60s",
  to: "ends this long after the script was set: to=120s",
  page: "only the first page of a walk, or later ones: page=first|later",
  query: "only with this query parameter or live message property: query=indexType=LX",
};

/** Describes the faults and the conditions, for the help text. */
export function describeFaults(): string {
  const faults = faultDefinitions.map(({ name, group, parameters, description }) => {
    const usage = Object.entries(parameters).map(([key, { choices, kind, defaultValue }]) => {
      const values = choices ? choices.join("|") : kind;
      return defaultValue === undefined ? `${key}=${values}` : `[${key}=${values}]`;
    });
    return `${[name, ...usage].join(" ")}\n    ${group}: ${description}`;
  });
  const conditions = Object.entries(faultConditions).map(
    ([name, description]) => `${name}=…\n    condition: ${description}`,
  );
  return [...faults, ...conditions].join("\n");
}
