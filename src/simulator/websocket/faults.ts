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

/** The faults that trigger on an event of the websocket. Events with the same key count as the same request. */
export function liveFaults(
  script: FaultScript | undefined,
  kind: FaultEvent["kind"],
  key: string = kind,
  query: FaultEvent["query"] = new Map(),
): TriggeredFault[] {
  return script?.triggeredFaults({ kind, method: "ws", path: "/", query, key: `ws ${key}` }) ?? [];
}

/** Messages with the same body count as the same request. The body excludes requestId, which counts up. */
export function messageFaults(
  script: FaultScript | undefined,
  kind: "subscribe" | "unsubscribe",
  { requestId: _, ...body }: Readonly<Record<string, unknown>>,
): TriggeredFault[] {
  const query = new Map(Object.entries(body).map(([name, value]) => [name, String(value)]));
  return liveFaults(script, kind, JSON.stringify([...query].sort()), query);
}

export function findFault(faults: readonly TriggeredFault[], name: string): TriggeredFault | undefined {
  return faults.find(({ line }) => line.definition.name === name);
}

/** Sends never, late, twice or, without such a fault, once. */
export function sendAsFaultSays(
  session: LiveSession,
  fault: TriggeredFault | undefined,
  send: () => void,
): void {
  const is = fault?.line.textOf("is");
  if (is === "late") session.after(fault?.line.numberOf("by") ?? 0, send);
  else if (is !== "never") send();
  if (is === "twice") send();
}

/** Rejects the upgrade with an HTTP response. */
export function rejectUpgrade(
  socket: Duplex,
  status: number,
  message: string,
  nowMs: number,
  headers: Record<string, string> = {},
): void {
  const body = errorBody(status, message, new Date(nowMs).toISOString());
  const lines = Object.entries({
    date: new Date(nowMs).toUTCString(),
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n${body}`);
}

export function retryAfterHeaders({ line }: TriggeredFault, nowMs: number): Record<string, string> {
  const retryAfter = formatRetryAfter(line.textOf("retry-after"), line.numberOf("wait"), nowMs);
  return retryAfter === undefined ? {} : { "retry-after": retryAfter };
}

/** Applies a fault of the connection itself, at once or after a while. */
export function applyConnectionFault(fault: TriggeredFault, session: LiveSession): void {
  const act = CONNECTION_FAULTS[fault.line.definition.name];
  const delayMs = fault.line.numberOf("in");
  if (act && delayMs > 0) session.after(delayMs, () => act(session, fault));
  else act?.(session, fault);
}

const CONNECTION_FAULTS: Record<string, (session: LiveSession, fault: TriggeredFault) => void> = {
  "drop-connection": (session, { line }) => session.close(line.numberOf("code"), "simulated disconnect"),
  mute(session) {
    session.isMuted = true;
  },
  "half-open": (session) => session.freeze(),
  "ping-storm"(session, { line }) {
    let requestId = 1_000_000;
    session.every(line.numberOf("every"), () => session.ping(requestId++));
  },
  message: (session, fault) => session.write(renderFaultyMessage(fault)),
};

/** One tick to send to one client. */
interface OutgoingTick {
  session: LiveSession;
  text: string;
  seriesKey: string;
  tick: number;
}

/** Returns the frames to send now for this tick; schedules delayed frames on the session. */
export function applyTickFaults(
  script: FaultScript,
  { session, text, seriesKey, tick }: OutgoingTick,
): Buffer[] {
  const record: unknown = parsePreservingDigits(text);
  let fields = toJsonFields(typeof record === "object" && record !== null ? record : {});
  const query = new Map(fields.map(([name, value]) => [name, value.replace(/^"(.*)"$/, "$1")]));
  const faults = liveFaults(script, "tick", `tick ${seriesKey} ${tick}`, query);
  if (faults.length === 0) return [encodeFrame(text)];

  for (const fault of faults) {
    applyConnectionFault(fault, session);
    const { name, group } = fault.line.definition;
    const isSelected = group === "payload" && appliesToRow(fault, 0, 1);
    const before = fields;
    if (name === "other-value") fields = fields.map(changeValue);
    if (isSelected) fields = applyRecordFault(fault, fields) ?? fields;
    if (group === "payload" && formatJsonFields(fields) === formatJsonFields(before)) fault.uncount();
  }
  const find = (name: string) => findFault(faults, name);
  const bytes = encodeFrame(formatJsonFields(fields), find("binary-tick") ? opcodes.binary : opcodes.text);
  const frames = find("duplicate-tick") ? [bytes, bytes] : [bytes];
  const late = find("late-tick");
  if (late) for (const each of frames) session.after(late.line.numberOf("by"), () => session.write(each));
  return late || find("missing-tick") ? [] : frames;
}

/** Changes the id, and the first digit of the price. */
function changeValue([name, json]: [string, string]): [string, string] {
  if (name === "id") return [name, JSON.stringify(`${json.replaceAll('"', "")}-live`)];
  return [
    name,
    name === "price" || name === "last"
      ? json.replace(/\d/, (digit) => String((Number(digit) % 9) + 1))
      : json,
  ];
}
