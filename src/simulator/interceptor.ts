import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { HttpExchange } from "./rest/http-types.ts";
import type { InterceptMessages, LiveSession } from "./websocket/session.ts";

/** A message of a websocket client: the properties of a JSON object. */
export type LiveMessage = Readonly<Record<string, unknown>>;

/**
 * Sees everything that the simulator receives and sends, and may change it. `proceed` does what the simulator does without
 * an interceptor.
 */
export interface Interceptor {
  /** Sends the response to an HTTP request. */
  respond?(exchange: HttpExchange, proceed: () => void): void;
  /** A request for a websocket. `proceed` accepts or rejects it, and returns the status. */
  upgrade?(request: IncomingMessage, socket: Socket, proceed: () => number): void;
  /** A message from a client. */
  receive?(session: LiveSession, message: LiveMessage, proceed: () => void): void;
  /** Messages to a client, as JSON. */
  send?: InterceptMessages;
}
