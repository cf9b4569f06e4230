import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ApiServer } from "../../src/api-server/api-server.ts";
import type { Session } from "../../src/api-server/session.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { mixBits } from "../../src/simulator/market/hash.ts";
import type { World } from "../../src/simulator/world.ts";
import type { JsonFields, Page, PageMemory, Query } from "./faults/page.ts";
import type { PlainResponse } from "./plain-response.ts";

/** When a fault strikes; all conditions must hold. */
export interface Conditions {
  /**
   * A path without its version (a trailing `*` matches any rest), `*` for every request, or `ticks` for those of the
   * websocket. Default: every GET.
   */
  readonly on?: string;
  /** The probability per event. */
  readonly p?: number;
  /** How often at most on the same request. */
  readonly times?: number;
  /** How often the same request passes first. */
  readonly after?: number;
  /** How often at most. The only condition that depends on the order of requests. */
  readonly total?: number;
  /** Milliseconds since the faults were set. */
  readonly from?: number;
  readonly to?: number;
  /** Only the first page of a walk, or later ones. */
  readonly page?: "first" | "later";
  /** Only with these query parameters, or properties of a live message. */
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/** On what a fault strikes: an HTTP request, an event of the websocket, or the moment at which the faults are set. */
export type FaultEvent = "request" | "upgrade" | "accept" | "subscribe" | "unsubscribe" | "tick" | "port";

/** The only client of the service. Changes apply to later tokens. */
export interface ClientSettings {
  clientId: string;
  clientSecret: string;
  scopes: readonly string[];
  tokenSeconds: number;
}

/** The simulated service, as faults see and change it. */
export interface SimulatedService {
  readonly server: ApiServer;
  readonly settings: ClientSettings;
  /** The client secret and the newest token of each audience. */
  readonly secrets: readonly string[];
  /** The data that it serves. */
  readonly world: World;
}

/** One strike of a fault. */
export interface Strike {
  readonly clock: Clock;
  readonly service: SimulatedService;
  /** A fraction in [0, 1) for further choices, which depends on the seed, the fault and the request alone. */
  chance(...about: (string | number)[]): number;
}

/** One strike on an HTTP request. */
export interface HttpStrike extends Strike {
  readonly query: Query;
  readonly body: string;
  readonly authorization: string;
  readonly nowMs: number;
  readonly rawResponse: ServerResponse;
  readonly memory: PageMemory;
  /** The response without faults to the same path with another query, or at another time. */
  fetch(query: Query, nowMs?: number): PlainResponse;
}

/** A response on its way, after all changes. */
export interface Delivery {
  readonly socket: Socket;
  readonly rawResponse: ServerResponse;
  readonly response: PlainResponse;
  readonly clock: Clock;
  /** The connection has served a request before. */
  readonly isReused: boolean;
}

/** What a fault does to an HTTP response, at one or several steps in this order. Undefined: it changes nothing. */
interface HttpEffect {
  /** The most rows on a page. All later steps change, or replace, pages of this size. */
  readonly maxRows?: number;
  /** It needs the cursors of all earlier pages. Without such a fault, a page that nobody reads is not rendered. */
  readonly usesCursors?: boolean;
  /** Responds to another request. */
  request?(response: PlainResponse, strike: HttpStrike): PlainResponse | undefined;
  /** Changes a page, or a single record without an envelope. */
  page?(page: Page, strike: HttpStrike): Page | undefined;
  /** Changes a record of a page, or a tick. */
  record?(fields: JsonFields, strike: Strike): JsonFields;
  /** Which records. A number: this share of them. */
  readonly rows?: RowChoice;
  response?(response: PlainResponse, strike: HttpStrike): PlainResponse | undefined;
  encode?(response: PlainResponse): PlainResponse;
  readonly latencyMs?: number;
  /** Returns false if it has not sent the response. */
  deliver?(delivery: Delivery): boolean | Promise<boolean>;
}

export type RowChoice = "all" | "first" | "last" | number;

/** What a fault does to a websocket. */
interface LiveEffect {
  /** Answers the upgrade. Returns the status; 0: none. */
  upgrade?(socket: Socket, strike: Strike): number;
  /** Answers a message with an ERROR of these properties. */
  error?(): Record<string, unknown>;
  /** Sends CONNECTED or SUBSCRIBED_*. */
  confirm?(session: Session, text: string, send: (text: string) => void): void;
  /** Disturbs the connection. */
  disturb?(session: Session, strike: LiveStrike): void;
  /** The frames of a tick. */
  frames?(frames: Buffer[], session: Session): Buffer[];
}

export interface LiveStrike extends Strike {
  /** Sends no more ticks to the session, or nothing at all. */
  silence(session: Session, what: "ticks" | "everything"): void;
}

/** A deviation of the service: a function of a request and its response, or of the events of a websocket. */
export interface Fault extends HttpEffect, LiveEffect {
  readonly name: string;
  readonly events: readonly FaultEvent[];
  readonly conditions: Conditions;
  /** The records that it withdraws. */
  readonly withdrawn?: { readonly from: number; readonly to: number };
}

/** Options of the factory of a fault: some of its own, and the conditions. */
export type Options<Own = object> = Conditions & Own;

/** `on: "ticks"` makes it a fault of the websocket's ticks. */
export function httpFault(name: string, conditions: Conditions, effect: HttpEffect): Fault {
  return { name, conditions, events: [conditions.on === "ticks" ? "tick" : "request"], ...effect };
}

export function liveFault(
  name: string,
  events: readonly FaultEvent[],
  conditions: Conditions,
  effect: LiveEffect & Pick<HttpEffect, "record"> = {},
): Fault {
  return { name, conditions, events, ...effect };
}

/** A 32-bit hash of a text. */
export function hashText(text: string, salt = 0): number {
  let h = mixBits(salt ^ text.length);
  for (let at = 0; at < text.length; at++) h = Math.imul(h ^ text.charCodeAt(at), 0x01000193);
  return mixBits(h);
}
