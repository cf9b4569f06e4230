import type { Duplex } from "node:stream";
import { formatRetryAfter } from "../faults/body-faults.ts";
import {
  appliesToRow,
  applyRecordFault,
  formatJsonFields,
  parsePreservingDigits,
  toJsonFields,
} from "../faults/record-faults.ts";
import type { FaultEvent, FaultScript, TriggeredFault } from "../faults/script.ts";
import { errorBody } from "../rest/errors.ts";
import { encodeFrame, opcodes, renderFaultyMessage } from "./frames.ts";
import type { LiveSession } from "./session.ts";

type Properties = ReadonlyMap<string, string>;
const NO_PROPERTIES: Properties = new Map();

/** What a fault script does to websocket clients. Each function asks the script about one moment. */
export function upgradeFaults(script: FaultScript | undefined, path: string): TriggeredFault[] {
  return triggeredFaultsAt(script, "upgrade", { path, query: NO_PROPERTIES, key: "ws upgrade" });
}

export function acceptFaults(script: FaultScript | undefined, path: string): TriggeredFault[] {
  return triggeredFaultsAt(script, "accept", { path, query: NO_PROPERTIES, key: "ws accept" });
}

/** The very same message is the same body; requestId, which counts up, is no part of it. */
export function messageFaults(
  script: FaultScript | undefined,
  moment: "subscribe" | "unsubscribe",
  message: Readonly<Record<string, unknown>>,
): TriggeredFault[] {
  const { requestId: _, ...body } = message;
  const query = new Map(Object.entries(body).map(([name, value]) => [name, String(value)]));
  return triggeredFaultsAt(script, moment, {
    path: "/",
    query,
    key: `ws ${JSON.stringify([...query].sort())}`,
  });
}

function triggeredFaultsAt(
  script: FaultScript | undefined,
  moment: FaultEvent["kind"],
  event: Pick<FaultEvent, "path" | "query" | "key">,
): TriggeredFault[] {
  return script?.handles(moment) ? script.triggeredFaults({ kind: moment, method: "ws", ...event }) : [];
}

/** Refuses the upgrade over plain HTTP. */
export function rejectUpgrade(
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

export function retryAfterHeaders({ line }: TriggeredFault, now: number): Record<string, string> {
  const wait = formatRetryAfter(line.textOf("retry-after"), line.numberOf("wait"), now);
  return wait === undefined ? {} : { "retry-after": wait };
}

/** Faults of the connection itself, whichever moment drew them. */
export function applyConnectionFault(strike: TriggeredFault, session: LiveSession): void {
  const { line } = strike;
  const soon = (act: () => void) =>
    line.numberOf("in") > 0 ? session.after(line.numberOf("in"), act) : act();
  switch (line.definition.name) {
    case "drop-connection":
      soon(() => session.close(line.numberOf("code"), "the simulator was told to"));
      break;
    case "mute":
      soon(() => {
        session.isMuted = true;
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
      soon(() => session.write(renderFaultyMessage(strike)));
      break;
  }
}

/** One tick on its way to one client. */
export interface OutgoingTick {
  session: LiveSession;
  text: string;
  seriesKey: string;
  tick: number;
}

/** The frames to send now for this tick; later ones are set on the session's timers. */
export function applyTickFaults(
  script: FaultScript,
  { session, text, seriesKey, tick }: OutgoingTick,
): Buffer[] {
  const record: unknown = parsePreservingDigits(text);
  let fields = toJsonFields(typeof record === "object" && record !== null ? record : {});
  const query = new Map(fields.map(([name, value]) => [name, value.replace(/^"(.*)"$/, "$1")]));
  const strikes = triggeredFaultsAt(script, "tick", {
    path: "/",
    query,
    key: `ws tick ${seriesKey} ${tick}`,
  });
  if (strikes.length === 0) return [encodeFrame(text)];

  for (const strike of strikes) {
    applyConnectionFault(strike, session);
    const { name: word, group } = strike.line.definition;
    const mangles = group === "payload" && appliesToRow(strike, 0, 1);
    const before = fields;
    if (word === "other-value") fields = fields.map(changeValue);
    if (mangles) fields = applyRecordFault(strike, fields) ?? fields;
    if (group === "payload" && formatJsonFields(fields) === formatJsonFields(before)) strike.uncount();
  }
  const has = (word: string) => strikes.find(({ line }) => line.definition.name === word);
  const bytes = encodeFrame(formatJsonFields(fields), has("binary-tick") ? opcodes.binary : opcodes.text);
  const frames = has("duplicate-tick") ? [bytes, bytes] : [bytes];
  const late = has("late-tick");
  if (late) for (const each of frames) session.after(late.line.numberOf("by"), () => session.write(each));
  return late || has("missing-tick") ? [] : frames;
}

/** Another first digit in the figure, another id. */
function changeValue([name, json]: [string, string]): [string, string] {
  if (name === "id") return [name, JSON.stringify(`${json.replaceAll('"', "")}-live`)];
  return [
    name,
    name === "price" || name === "last"
      ? json.replace(/\d/, (digit) => String((Number(digit) % 9) + 1))
      : json,
  ];
}
