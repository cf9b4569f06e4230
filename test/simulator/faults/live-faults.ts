import { encodeFrame, encodeFrames } from "../../../src/api-server/frames.ts";
import type { Session } from "../../../src/api-server/session.ts";
import { rejectUpgrade } from "../../../src/api-server/websocket.ts";
import { renderTicks } from "../../../src/simulator/market-feed.ts";
import { type Conditions, type Fault, type LiveStrike, liveFault, type Options } from "../fault.ts";
import { type RetryAfter, retryAfterHeaders, waitWhileConnected } from "./responses.ts";

/** Rejects the upgrade with this HTTP status. */
export function upgradeStatus(code: number, options: Options<RetryAfter> = {}): Fault {
  return liveFault(`upgradeStatus ${code}`, ["upgrade"], options, {
    upgrade(socket, { clock }) {
      const now = clock.now();
      rejectUpgrade(socket, code, "simulated failure", now, retryAfterHeaders(options, now));
      return code;
    },
  });
}

/** Never responds to the upgrade. */
export function upgradeStall(conditions: Conditions = {}): Fault {
  return liveFault("upgradeStall", ["upgrade"], conditions, {
    upgrade(socket, { clock }) {
      // No other code reads this socket: read it here, to notice when the client disconnects.
      socket.on("end", () => socket.destroy()).resume();
      void waitWhileConnected(clock, socket, Number.POSITIVE_INFINITY);
      return 0;
    },
  });
}

type Confirmation = "never" | "twice" | "late";
type ConfirmationOptions = Options<{ by?: number }>;

function confirmationFault(
  name: string,
  event: "accept" | "subscribe",
  is: Confirmation | "other",
  options: ConfirmationOptions,
): Fault {
  return liveFault(`${name} ${is}`, [event], options, {
    confirm(session, text, send) {
      if (is === "late") session.after(options.by ?? 5_000, () => send(text));
      else if (is === "other") send(JSON.stringify(otherSubscription(text)));
      else if (is === "twice") {
        send(text);
        send(text);
      }
    },
  });
}

function otherSubscription(text: string): object {
  const { event, indexType } = JSON.parse(text);
  if (indexType) return { event, indexType: indexType === "LX" ? "GWA" : "LX" };
  return { event, exchangeId: "another", marketId: "another" };
}

/** Sends CONNECTED never, twice, or late. */
export const connected = (is: Confirmation, options: ConfirmationOptions = {}): Fault =>
  confirmationFault("connected", "accept", is, options);

/** Sends SUBSCRIBED_* never, for another subscription, after the ticks, or twice. */
export const subscribed = (is: Confirmation | "other", options: ConfirmationOptions = {}): Fault =>
  confirmationFault("subscribed", "subscribe", is, options);

/** Responds to a subscription with an ERROR of this code, which may be a number or missing. */
export function subscriptionError(code: string | number | undefined, conditions: Conditions = {}): Fault {
  return liveFault("subscriptionError", ["subscribe", "unsubscribe"], conditions, {
    error: () => ({ ...(code === undefined ? {} : { code }), message: "simulated failure" }),
  });
}

/** `when`: the event that it follows. Default: the accepted connection. `in`: how many milliseconds later. */
type ConnectionOptions = Options<{ when?: "accept" | "subscribe" | "tick"; in?: number }>;

function connectionFault(
  name: string,
  options: ConnectionOptions,
  act: (session: Session, strike: LiveStrike) => void,
): Fault {
  return liveFault(name, [options.when ?? "accept"], options, {
    disturb(session, strike) {
      if (options.in) session.after(options.in, () => act(session, strike));
      else act(session, strike);
    },
  });
}

/** Closes the connection with this close code; 1006: without a close frame. */
export function dropConnection(options: ConnectionOptions & { code?: number } = {}): Fault {
  return connectionFault("dropConnection", options, (session) =>
    session.close(options.code ?? 1006, "simulated disconnect"),
  );
}

/** Sends no more ticks, but everything else. */
export const mute = (options: ConnectionOptions = {}): Fault =>
  connectionFault("mute", options, (session, { silence }) => silence(session, "ticks"));

/** Sends no more frames and does not close, as after a network failure. */
export const halfOpen = (options: ConnectionOptions = {}): Fault =>
  connectionFault("halfOpen", options, (session, { silence }) => silence(session, "everything"));

/** Sends a JSON PING at this interval. */
export function pingStorm(everyMs: number, options: ConnectionOptions = {}): Fault {
  return connectionFault("pingStorm", options, (session) => {
    let requestId = 1_000_000;
    const ping = () => {
      session.sendEvent("PING", { requestId: requestId++ });
      session.after(everyMs, ping);
    };
    session.after(everyMs, ping);
  });
}

/** Sends the last ticks of each subscribed series again after SUBSCRIBED_*. */
export function replay(ticks: number, conditions: Conditions = {}): Fault {
  return connectionFault("replay", { ...conditions, when: "subscribe" }, (session, { service, clock }) => {
    const { world } = service;
    const newest = world.calendar.newestTick(clock.now());
    for (let tick = newest - ticks + 1; tick <= newest; tick++)
      for (const { texts } of renderTicks(world, session.topics, tick, clock.now()))
        session.write(encodeFrames(texts));
  });
}

const TRADE = {
  event: "TRADE",
  id: "5f1c1a2e-0000-4000-8000-000000000001",
  tradeId: "77",
  price: "1.5",
  amount: "2",
};

/** Other first bytes of a frame: parts of a message, and a binary one. */
const [CONTINUATION, FIRST_TEXT, WHOLE_BINARY] = [0x00, 0x01, 0x82];
const withFirstByte = (first: number, frame: Buffer) => Buffer.concat([Buffer.of(first), frame.subarray(1)]);

const MESSAGES = {
  garbage: (_bytes: number, { chance }: LiveStrike) =>
    withFirstByte(
      WHOLE_BINARY,
      encodeFrame(Buffer.from(Array.from({ length: 64 }, (_, at) => Math.floor(chance("byte", at) * 256)))),
    ),
  utf8: () =>
    encodeFrame(
      Buffer.concat([Buffer.from('{"event":"TRADE","note":"'), Buffer.of(0xc3, 0x28), Buffer.from('"}')]),
    ),
  oversized: (bytes: number) => encodeFrame(JSON.stringify({ ...TRADE, note: "x".repeat(bytes) })),
  fragments(bytes: number) {
    const piece = Buffer.alloc(16_384, "x");
    const pieces = Array.from({ length: Math.ceil(bytes / piece.length) }, () =>
      withFirstByte(CONTINUATION, encodeFrame(piece)),
    );
    return Buffer.concat([withFirstByte(FIRST_TEXT, encodeFrame('{"event":"TRADE","note":"')), ...pieces]);
  },
  deflated() {
    // RSV1 marks the message as compressed, which was not negotiated.
    const message = encodeFrame(JSON.stringify(TRADE));
    message[0] = (message[0] ?? 0) | 0x40;
    return message;
  },
  trade: () => encodeFrame(JSON.stringify(TRADE)),
  "no-event": () => encodeFrame('{"price":"1"}'),
  array: () => encodeFrame('[{"event":"INDEX_TICKER"}]'),
  null: () => encodeFrame("null"),
  "not-json": () => encodeFrame('{"event":'),
};

/** Sends one unexpected message. */
export function message(
  is: keyof typeof MESSAGES,
  options: ConnectionOptions & { bytes?: number } = {},
): Fault {
  return connectionFault(`message ${is}`, options, (session, strike) =>
    session.write(MESSAGES[is](options.bytes ?? 2 ** 21, strike)),
  );
}

const tickFault = (name: string, conditions: Conditions, frames: NonNullable<Fault["frames"]>): Fault =>
  liveFault(name, ["tick"], conditions, { frames });

/** Sends the tick twice. */
export const duplicateTick = (conditions: Conditions = {}): Fault =>
  tickFault("duplicateTick", conditions, (frames) => [...frames, ...frames]);

/** Does not send the tick. */
export const missingTick = (conditions: Conditions = {}): Fault =>
  tickFault("missingTick", conditions, () => []);

/** Sends the tick after later ones. */
export function lateTick(ms: number, conditions: Conditions = {}): Fault {
  return tickFault("lateTick", conditions, (frames, session) => {
    for (const frame of frames) session.after(ms, () => session.write(frame));
    return [];
  });
}

/** Sends the JSON of the tick in a binary frame. */
export const binaryTick = (conditions: Conditions = {}): Fault =>
  tickFault("binaryTick", conditions, (frames) => frames.map((frame) => withFirstByte(WHOLE_BINARY, frame)));

/** Sends another price and id than REST for the same timestamp. */
export function otherValue(conditions: Conditions = {}): Fault {
  return liveFault("otherValue", ["tick"], conditions, {
    record: (fields) =>
      fields.map(([name, json]) => {
        if (name === "id") return [name, JSON.stringify(`${json.replaceAll('"', "")}-live`)];
        if (name !== "price" && name !== "last") return [name, json];
        return [name, json.replace(/\d/, (digit) => String((Number(digit) % 9) + 1))];
      }),
  });
}

/** Closes the port and all connections between `from` and `to`: connection refused. */
export function refuse(conditions: Pick<Conditions, "from" | "to"> = {}): Fault {
  return liveFault("refuse", ["port"], conditions);
}
