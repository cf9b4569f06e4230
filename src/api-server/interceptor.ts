import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { InterceptMessages, Session } from "./session.ts";

/** One request, completely received. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  /** Path and query as received. */
  readonly target: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** When the request arrived, by the clock of the server. */
  readonly nowMs: number;
}

/** A response before compression. */
export interface ApiResponse {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A request and its response, before it is sent. */
export interface HttpExchange {
  readonly request: ApiRequest;
  readonly response: ApiResponse;
  /** The response to the same caller with another query or at another time. */
  readonly respondTo: (query: URLSearchParams, nowMs: number) => ApiResponse;
  readonly rawResponse: ServerResponse;
}

/** A message of a websocket client: the properties of a JSON object. */
export type LiveMessage = Readonly<Record<string, unknown>>;

/**
 * Sees and may change everything that the server receives and sends, so that tests can add faults. `proceed` continues as
 * without an interceptor.
 */
export interface Interceptor {
  /** Sends the response to an HTTP request. */
  respond?(exchange: HttpExchange, proceed: () => void): void;
  /** A request for a websocket. `proceed` accepts or rejects it, and returns the status. */
  upgrade?(request: IncomingMessage, socket: Socket, proceed: () => number): void;
  /** A message from a client. */
  receive?(session: Session, message: LiveMessage, proceed: () => void): void;
  /** Messages to a client, as JSON. */
  send?: InterceptMessages;
}
