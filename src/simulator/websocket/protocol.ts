import type { LiveMessage } from "../interceptor.ts";
import type { LiveSession } from "./session.ts";
import type { SubscriptionDirectory, SubscriptionRequest } from "./subscriptions.ts";
import type { LiveTicker } from "./ticker.ts";

/** The properties of the ERROR in reply to a message; undefined when there is no error. */
type ErrorProperties = Record<string, unknown> | undefined;

/** Handles the messages of clients. */
export class LiveProtocol {
  readonly #directory: SubscriptionDirectory;
  readonly #ticker: LiveTicker;

  constructor(directory: SubscriptionDirectory, ticker: LiveTicker) {
    this.#directory = directory;
    this.#ticker = ticker;
  }

  /** `message`: undefined when it is no JSON object. */
  receive(session: LiveSession, message: LiveMessage | undefined): void {
    const error = message ? this.#handleMessage(session, message) : badRequest("a message is a JSON object");
    if (error) session.sendEvent("ERROR", error);
  }

  #handleMessage(session: LiveSession, message: LiveMessage): ErrorProperties {
    const { event, requestId } = message;
    switch (event) {
      case "PING":
        session.sendEvent("PONG", requestId === undefined ? {} : { requestId });
        return undefined;
      case "PONG":
        session.awaitsPong = false;
        return undefined;
      default:
        return this.#changeSubscription(session, message);
    }
  }

  #changeSubscription(session: LiveSession, message: LiveMessage): ErrorProperties {
    const [, verb, ticker] =
      /^((?:UN)?SUBSCRIBE)_((?:INDEX|EXCHANGE)_TICKER)$/.exec(String(message.event)) ?? [];
    if (verb === undefined) return badRequest("unknown event");
    const request =
      ticker === "INDEX_TICKER"
        ? this.#directory.resolveIndexes(message)
        : this.#directory.resolveExchanges(message);
    if ("code" in request) return { ...request };
    if (verb === "SUBSCRIBE") return this.#subscribe(session, `SUBSCRIBED_${ticker}`, request);
    // The service does not confirm the end of a subscription: the ticks just stop.
    session.subscriptions.delete(request.key);
    return undefined;
  }

  #subscribe(session: LiveSession, reply: string, request: SubscriptionRequest): ErrorProperties {
    if (!session.scopes.has(request.scope))
      return { code: "403", message: `the token lacks the scope ${request.scope}` };
    session.subscriptions.set(request.key, request.series);
    session.sendEvent(reply, request.confirmation);
    this.#ticker.scheduleNextTick();
    return undefined;
  }
}

const badRequest = (message: string) => ({ code: "400", message });

/** Undefined when the text is no JSON object. */
export function parseMessage(text: string): LiveMessage | undefined {
  try {
    const message: unknown = JSON.parse(text);
    const isObject = typeof message === "object" && message !== null && !Array.isArray(message);
    return isObject ? (message as LiveMessage) : undefined;
  } catch {
    return undefined;
  }
}
