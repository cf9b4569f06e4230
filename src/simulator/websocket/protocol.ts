import type { FaultScript, TriggeredFault } from "../faults/script.ts";
import { applyConnectionFault, findFault, messageFaults, sendAsFaultSays } from "./faults.ts";
import { faultyErrorProperties } from "./frames.ts";
import type { PongLog } from "./pong-log.ts";
import type { LiveSession } from "./session.ts";
import type { SubscriptionDirectory, SubscriptionRequest } from "./subscriptions.ts";
import type { LiveTicker } from "./ticker.ts";

type Message = Readonly<Record<string, unknown>>;

/** The properties of the ERROR in reply to a message; undefined when there is no error. */
type ErrorProperties = Record<string, unknown> | undefined;

/** Handles the messages of clients. */
export class LiveProtocol {
  faults: FaultScript | undefined;
  readonly #directory: SubscriptionDirectory;
  readonly #ticker: LiveTicker;
  readonly #pongs: PongLog;

  constructor(directory: SubscriptionDirectory, ticker: LiveTicker, pongs: PongLog) {
    this.#pongs = pongs;
    this.#directory = directory;
    this.#ticker = ticker;
  }

  receive(session: LiveSession, text: string): void {
    const message = parseMessage(text);
    const error = message ? this.#handleMessage(session, message) : badRequest("a message is a JSON object");
    if (error) session.sendEvent("ERROR", error);
  }

  #handleMessage(session: LiveSession, message: Message): ErrorProperties {
    const { event, requestId } = message;
    switch (event) {
      case "PING":
        session.sendEvent("PONG", requestId === undefined ? {} : { requestId });
        return undefined;
      case "PONG": {
        session.awaitsPong = false;
        const ms = session.takeRoundTripMs(requestId);
        if (ms !== undefined) this.#pongs.add(ms);
        return undefined;
      }
      default:
        return this.#changeSubscription(session, message);
    }
  }

  #changeSubscription(session: LiveSession, message: Message): ErrorProperties {
    const [, verb, ticker] =
      /^((?:UN)?SUBSCRIBE)_((?:INDEX|EXCHANGE)_TICKER)$/.exec(String(message.event)) ?? [];
    if (verb === undefined) return badRequest("unknown event");
    const isStart = verb === "SUBSCRIBE";
    const faults = messageFaults(this.faults, isStart ? "subscribe" : "unsubscribe", message);
    const error = findFault(faults, "error");
    if (error) return faultyErrorProperties(error);
    const request =
      ticker === "INDEX_TICKER"
        ? this.#directory.resolveIndexes(message)
        : this.#directory.resolveExchanges(message);
    if ("code" in request) return { ...request };
    if (isStart) return this.#subscribe(session, `SUBSCRIBED_${ticker}`, request, faults);
    // The service does not confirm the end of a subscription: the ticks just stop.
    session.subscriptions.delete(request.key);
    return undefined;
  }

  #subscribe(
    session: LiveSession,
    reply: string,
    request: SubscriptionRequest,
    faults: readonly TriggeredFault[],
  ): ErrorProperties {
    if (!session.scopes.has(request.scope))
      return { code: "403", message: `the token lacks the scope ${request.scope}` };

    session.subscriptions.set(request.key, request.series);
    sendConfirmation(session, reply, request, findFault(faults, "subscribed"));
    this.#ticker.replay(session, request.series, findFault(faults, "replay")?.line.numberOf("ticks") ?? 0);
    for (const fault of faults) applyConnectionFault(fault, session);
    this.#ticker.scheduleNextTick();
    return undefined;
  }
}

function sendConfirmation(
  session: LiveSession,
  reply: string,
  { confirmation }: SubscriptionRequest,
  fault: TriggeredFault | undefined,
): void {
  const other =
    "indexType" in confirmation
      ? { indexType: confirmation.indexType === "LX" ? "GWA" : "LX" }
      : { exchangeId: "another", marketId: "another" };
  const isOther = fault?.line.textOf("is") === "other";
  sendAsFaultSays(session, fault, () => session.sendEvent(reply, isOther ? other : confirmation));
}

const badRequest = (message: string) => ({ code: "400", message });

function parseMessage(text: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(text);
    const isObject = typeof message === "object" && message !== null && !Array.isArray(message);
    return isObject ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}
