import type { Agent } from "node:https";
import { type RawData, WebSocket } from "ws";
import { formatInstant, type Micros } from "../../model/time.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { type Ending, endingOfClose, endingOfError, endingOfStatus, isBadFrame } from "./close-reason.ts";
import { type Frame, readFrame, type ServiceTime } from "./frames.ts";
import type { Subscription } from "./messages.ts";
import { Subscriber } from "./subscriber.ts";
import type { Standing } from "./subscription-status.ts";

const LARGEST_FRAME = 2 ** 20;
const MOST_FRAGMENTS = 4_096;
const GREETING_DEADLINE_MS = 10_000;
const PULSE_MS = 5_000;
const PING_EVERY_MS = 15_000;
const SILENCE_MS = 45_000;
const SUSPENSION_MS = 10_000;
/** A PING that waits behind a pause has to be answered within a second all the same. */
const LONGEST_PAUSE_MS = 700;

export interface ConnectionListener {
  onGreeted(): void;
  /** The first sign that the token is good: a greeting alone is none. */
  onAccepted(): void;
  onTick(source: "index" | "exchange", text: string): void;
  onNoise(frame: Extract<Frame, { kind: "unknown" | "error" }>): void;
  onAsked(subscription: Subscription): void;
  onConfirmed(subscription: Subscription): void;
  onDeclined(subscription: Subscription): void;
  /** Every subscription has been answered, one way or another. */
  onFollowing(): void;
  onPulse(): void;
  onEnded(ending: Ending): void;
}

interface ConnectionOptions {
  /** With the token in it: it must not reach any message, and no error of the library's is passed on as it is. */
  readonly address: string;
  readonly agent: Agent | undefined;
  /** Takes the token out of a text of the service's. */
  readonly conceal: (text: string) => string;
  readonly subscriptions: readonly Subscription[];
  readonly isTokenYoung: () => boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly standing: Standing;
  readonly time: ServiceTime;
  readonly listener: ConnectionListener;
}

/** One websocket from its dialling to its end. It ends once, by itself or by `end`, and is silent afterwards. */
export class LiveConnection {
  readonly #options: ConnectionOptions;
  readonly #socket: WebSocket;
  readonly #subscriber: Subscriber;
  readonly #timers = new Set<Cancel>();
  readonly #bornBoottime: number;
  readonly #bornMonotonic: number;
  #state: ConnectionState = "dialling";
  #heardAt: number;
  #lastHeard: Micros;
  #pingedAt: number;
  #greetedAt: number | undefined;
  #hadTick = false;
  #isAccepted = false;
  #paused: Cancel | undefined;
  /** Turned time waits for the dialling, which is no matter of time; the deadline is for servers that keep us waiting. */
  readonly #dialled: Cancel;

  constructor(options: ConnectionOptions) {
    const { address, clock, random, standing, subscriptions, listener, time } = options;
    this.#options = options;
    this.#bornBoottime = clock.boottime();
    this.#bornMonotonic = this.#heardAt = this.#pingedAt = clock.monotonic();
    this.#lastHeard = time.now();
    this.#subscriber = new Subscriber({
      subscriptions,
      clock,
      random,
      standing,
      send: (text) => this.#send(text),
      onAsking: (subscription) => {
        this.#on("asking");
        listener.onAsked(subscription);
      },
      onAnswered: () => this.#on("answered"),
      onConfirmed: (subscription) => listener.onConfirmed(subscription),
      onDeclined: (subscription) => listener.onDeclined(subscription),
    });
    this.#socket = new WebSocket(address, {
      perMessageDeflate: false,
      maxPayload: LARGEST_FRAME,
      followRedirects: false,
      ...(options.agent ? { agent: options.agent } : {}),
      // Missing in the type definitions of this release.
      ...{ maxFragments: MOST_FRAGMENTS },
    });
    this.#listen();
    this.#dialled = clock.hold();
    this.#after(GREETING_DEADLINE_MS, () => {
      if (this.#state === "dialling" || this.#state === "greeting") this.end({ reason: "no_greeting" });
    });
    this.#after(PULSE_MS, () => this.#pulse());
  }

  /** When anything was last heard, by the service's clock. */
  get lastHeard(): Micros {
    return this.#lastHeard;
  }

  /** It has greeted us at some time. */
  get wasGreeted(): boolean {
    return this.#greetedAt !== undefined;
  }

  /** It has been of use for at least `ms`: ticks came, not only a greeting. */
  hasServed(ms: number): boolean {
    return (
      this.#hadTick &&
      this.#greetedAt !== undefined &&
      this.#options.clock.monotonic() - this.#greetedAt >= ms
    );
  }

  resubscribe(subscription: Subscription): void {
    if (this.#state === "subscribing" || this.#state === "following") this.#subscriber.again(subscription);
  }

  renew(subscriptions: readonly Subscription[]): void {
    this.#subscriber.renew(subscriptions);
  }

  /** Lets the kernel hold what comes, for a moment: then all is read, PINGs among it, whatever the reader is at. */
  pause(onTooLong: () => void): void {
    if (this.#paused || this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.pause();
    this.#paused = this.#after(LONGEST_PAUSE_MS, () => {
      this.resume();
      onTooLong();
    });
  }

  resume(): void {
    if (!this.#paused) return;
    this.#cancel(this.#paused);
    this.#paused = undefined;
    this.#heardAt = this.#options.clock.monotonic();
    this.#socket.resume();
  }

  end(ending: Ending): void {
    if (this.#state === "ended") return;
    this.#on("ended");
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#subscriber.stop();
    // The close frame is written at once where the socket still takes it; nobody waits for the answer.
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close(1000);
    this.#socket.terminate();
    this.#options.listener.onEnded(ending);
  }

  #listen(): void {
    this.#socket.on("open", () => this.#on("opened"));
    this.#socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    this.#socket.on("ping", () => this.#heard());
    this.#socket.on("pong", () => this.#heard());
    this.#socket.on("unexpected-response", (_request, response) => {
      this.end(endingOfStatus(response.statusCode, response.headers, this.#options.clock.now()));
      response.destroy();
    });
    this.#socket.on("error", (error) => {
      if (this.#state === "ended") return;
      const ending = endingOfError(error);
      if (isBadFrame(error))
        this.#options.listener.onNoise({
          kind: "unknown",
          event: "(frame)",
          reason: ending.reason,
          text: "",
        });
      this.end(ending);
    });
    this.#socket.on("close", (code) => this.end(endingOfClose(code, this.wasGreeted)));
  }

  /** Every change of state goes through the table; what a state brings with it happens on entering it. */
  #on(event: ConnectionEvent): void {
    const before = this.#state;
    this.#state = nextState(before, event);
    if (this.#state === before) return;
    if (before === "dialling") this.#dialled();
    if (this.#state === "following") this.#options.listener.onFollowing();
    if (this.#state === "subscribing" && before === "greeting") {
      this.#greetedAt = this.#options.clock.monotonic();
      this.#options.listener.onGreeted();
      this.#subscriber.proceed();
    }
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#state === "ended") return;
    this.#heard();
    const frame = readFrame(asBuffer(data), isBinary);
    const { listener, time, conceal } = this.#options;
    switch (frame.kind) {
      case "tick":
        this.#hadTick = true;
        this.#accept();
        listener.onTick(frame.source, frame.text);
        break;
      case "ping":
        this.#send(
          JSON.stringify({ event: "PONG", timestamp: formatInstant(time.now()), requestId: frame.requestId }),
        );
        break;
      case "pong":
        time.hear(frame.timestamp);
        break;
      case "connected":
        time.hear(frame.timestamp);
        this.#on("greeted");
        break;
      case "subscribed":
        this.#accept();
        this.#subscriber.confirmed(frame.source, frame.fields);
        break;
      case "error":
        this.#refused(frame.code, conceal(frame.message));
        break;
      case "unknown":
        listener.onNoise({ ...frame, event: conceal(frame.event), text: conceal(frame.text) });
    }
  }

  #refused(code: string, message: string): void {
    // A young token that is good for others is not what is wrong: the next one would be refused here too, and so on for ever.
    // Nor is an old one where the same subscription was refused before: the service may hand out the same one all day.
    const isTokenGood =
      this.#isAccepted && (this.#options.isTokenYoung() || this.#subscriber.isAskingSuspect);
    if ((code !== "401" || isTokenGood) && this.#subscriber.failed(code, message)) return;
    if (code === "401") {
      this.#subscriber.blame();
      this.end({ reason: "error_401", tokenRefused: true });
    } else this.#options.listener.onNoise({ kind: "error", code, message });
  }

  #accept(): void {
    if (this.#isAccepted) return;
    this.#isAccepted = true;
    this.#options.listener.onAccepted();
  }

  #heard(): void {
    this.#heardAt = this.#options.clock.monotonic();
    this.#lastHeard = this.#options.time.now();
  }

  #pulse(): void {
    const { clock, listener } = this.#options;
    const now = clock.monotonic();
    const suspendedMs = clock.boottime() - this.#bornBoottime - (now - this.#bornMonotonic);
    const silentMs = this.#paused ? 0 : now - this.#heardAt;
    if (suspendedMs > SUSPENSION_MS || silentMs >= SILENCE_MS) {
      // After a sleep of the machine the peer, which has not slept, has long given us up.
      this.end({ reason: suspendedMs > SUSPENSION_MS ? "suspended" : "silent" });
      return;
    }
    // An ERROR in answer to a PING would be blamed on a subscription in flight, so it waits for its answer.
    const mayPing = !this.#subscriber.isAsking || silentMs >= PING_EVERY_MS;
    if (this.wasGreeted && mayPing && now - this.#pingedAt >= PING_EVERY_MS) {
      this.#pingedAt = now;
      this.#send('{"event":"PING"}');
    }
    if (this.#state === "following" || this.#state === "subscribing") listener.onPulse();
    this.#after(PULSE_MS, () => this.#pulse());
  }

  #send(text: string): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    // A failed write ends the socket, and `close` tells.
    this.#socket.send(text, () => {});
  }

  #after(ms: number, callback: () => void): Cancel {
    const cancel = this.#options.clock.after(ms, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
    return cancel;
  }

  #cancel(cancel: Cancel): void {
    this.#timers.delete(cancel);
    cancel();
  }
}

function asBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/**
 * What a connection can be doing, and what can happen to it. The table is complete because the compiler refuses it
 * otherwise: nobody has to guess what a late CONNECTED or a second one does.
 */
export type ConnectionState = "dialling" | "greeting" | "subscribing" | "following" | "ended";

export type ConnectionEvent =
  /** The websocket is open. */
  | "opened"
  /** CONNECTED came. */
  | "greeted"
  /** Every subscription has had its answer, or has waited long enough for one. */
  | "answered"
  /** A subscription has to be asked for (again). */
  | "asking"
  /** The socket is gone, or we have given it up. */
  | "ended";

const transitions: Readonly<Record<ConnectionState, Readonly<Record<ConnectionEvent, ConnectionState>>>> = {
  dialling: {
    opened: "greeting",
    greeted: "dialling",
    answered: "dialling",
    asking: "dialling",
    ended: "ended",
  },
  greeting: {
    opened: "greeting",
    greeted: "subscribing",
    answered: "greeting",
    asking: "greeting",
    ended: "ended",
  },
  subscribing: {
    opened: "subscribing",
    greeted: "subscribing",
    answered: "following",
    asking: "subscribing",
    ended: "ended",
  },
  following: {
    opened: "following",
    greeted: "following",
    answered: "following",
    asking: "subscribing",
    ended: "ended",
  },
  ended: {
    opened: "ended",
    greeted: "ended",
    answered: "ended",
    asking: "ended",
    ended: "ended",
  },
};

export function nextState(state: ConnectionState, event: ConnectionEvent): ConnectionState {
  return transitions[state][event];
}
