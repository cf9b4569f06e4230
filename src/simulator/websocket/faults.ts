import type { Duplex } from "node:stream";
import { retryAfter } from "../faults/body-faults.ts";
import { fieldsOf, isChosen, mangleRecord, parseKeepingDigits, textOf } from "../faults/record-faults.ts";
import type { FaultEvent, FaultScript, Strike } from "../faults/script.ts";
import { errorBody } from "../rest/errors.ts";
import { frame, oddMessage, opcodes } from "./frames.ts";
import type { LiveSession } from "./session.ts";

type Properties = ReadonlyMap<string, string>;
const nothing: Properties = new Map();

/** What a fault script does to websocket clients. Each function asks the script about one moment. */
export function upgradeStrikes(script: FaultScript | undefined, path: string): Strike[] {
  return strikesAt(script, "upgrade", { path, query: nothing, key: "ws upgrade" });
}

export function acceptStrikes(script: FaultScript | undefined, path: string): Strike[] {
  return strikesAt(script, "accept", { path, query: nothing, key: "ws accept" });
}

/** The very same message is the same body; requestId, which counts up, is no part of it. */
export function messageStrikes(
  script: FaultScript | undefined,
  moment: "subscribe" | "unsubscribe",
  message: Readonly<Record<string, unknown>>,
): Strike[] {
  const { requestId: _, ...body } = message;
  const query = new Map(Object.entries(body).map(([name, value]) => [name, String(value)]));
  return strikesAt(script, moment, { path: "/", query, key: `ws ${JSON.stringify([...query].sort())}` });
}

function strikesAt(
  script: FaultScript | undefined,
  moment: FaultEvent["moment"],
  event: Pick<FaultEvent, "path" | "query" | "key">,
): Strike[] {
  return script?.concerns(moment) ? script.strikes({ moment, method: "ws", ...event }) : [];
}

/** Refuses the upgrade over plain HTTP. */
export function refuseUpgrade(
  socket: Duplex,
  status: number,
  message: string,
  now: number,
  headers: Record<string, string> = {},
): void {
  const body = errorBody(status, message, new Date(now).toISOString());
  const lines = Object.entries({
    date: new Date(now).toUTCString(),
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n${body}`);
}

export function upgradeHeaders({ line }: Strike, now: number): Record<string, string> {
  const wait = retryAfter(line.textOf("retry-after"), line.numberOf("wait"), now);
  return wait === undefined ? {} : { "retry-after": wait };
}

/** Faults of the connection itself, whichever moment drew them. */
export function strikeConnection(strike: Strike, session: LiveSession): void {
  const { line } = strike;
  const soon = (act: () => void) =>
    line.numberOf("in") > 0 ? session.after(line.numberOf("in"), act) : act();
  switch (line.word.word) {
    case "drop-connection":
      soon(() => session.drop(line.numberOf("code"), "the simulator was told to"));
      break;
    case "mute":
      soon(() => {
        session.isMute = true;
      });
      break;
    case "half-open":
      soon(() => session.freeze());
      break;
    case "ping-storm": {
      let requestId = 1_000_000;
      soon(() => session.every(line.numberOf("every"), () => session.ping(requestId++)));
      break;
    }
    case "message":
      soon(() => session.write(oddMessage(strike)));
      break;
  }
}

/** One tick on its way to one client. */
export interface TickOnItsWay {
  session: LiveSession;
  text: string;
  seriesKey: string;
  tick: number;
}

/** The frames to send now for this tick; later ones are set on the session's timers. */
export function bendTick(script: FaultScript, { session, text, seriesKey, tick }: TickOnItsWay): Buffer[] {
  const record: unknown = parseKeepingDigits(text);
  let fields = fieldsOf(typeof record === "object" && record !== null ? record : {});
  const query = new Map(fields.map(([name, value]) => [name, value.replace(/^"(.*)"$/, "$1")]));
  const strikes = strikesAt(script, "tick", { path: "/", query, key: `ws tick ${seriesKey} ${tick}` });
  if (strikes.length === 0) return [frame(text)];

  for (const strike of strikes) {
    strikeConnection(strike, session);
    const { word, group } = strike.line.word;
    const mangles = group === "payload" && isChosen(strike, 0, 1);
    const before = fields;
    if (word === "other-value") fields = fields.map(otherValue);
    if (mangles) fields = mangleRecord(strike, fields) ?? fields;
    if (group === "payload" && textOf(fields) === textOf(before)) strike.miss();
  }
  const has = (word: string) => strikes.find(({ line }) => line.word.word === word);
  const bytes = frame(textOf(fields), has("binary-tick") ? opcodes.binary : opcodes.text);
  const frames = has("duplicate-tick") ? [bytes, bytes] : [bytes];
  const late = has("late-tick");
  if (late) for (const each of frames) session.after(late.line.numberOf("by"), () => session.write(each));
  return late || has("missing-tick") ? [] : frames;
}

/** Another first digit in the figure, another id. */
function otherValue([name, json]: [string, string]): [string, string] {
  if (name === "id") return [name, JSON.stringify(`${json.replaceAll('"', "")}-live`)];
  return [
    name,
    name === "price" || name === "last"
      ? json.replace(/\d/, (digit) => String((Number(digit) % 9) + 1))
      : json,
  ];
}
