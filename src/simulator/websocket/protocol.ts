import type { FaultScript, TriggeredFault } from "../faults/script.ts";
import { applyConnectionFault, messageFaults } from "./faults.ts";
import { faultyErrorProperties } from "./frames.ts";
import type { PongLog } from "./pong-log.ts";
import type { LiveSession } from "./session.ts";
import type { SubscriptionDirectory, SubscriptionError, SubscriptionRequest } from "./subscriptions.ts";
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
      case "SUBSCRIBE_INDEX_TICKER":
        return this.#subscribe(
          session,
          message,
          "SUBSCRIBED_INDEX_TICKER",
          this.#directory.resolveIndexes(message),
        );
      case "SUBSCRIBE_EXCHANGE_TICKER":
        return this.#subscribe(
          session,
          message,
          "SUBSCRIBED_EXCHANGE_TICKER",
          this.#directory.resolveExchanges(message),
        );
      case "UNSUBSCRIBE_INDEX_TICKER":
        return this.#unsubscribe(session, message, this.#directory.resolveIndexes(message));
      case "UNSUBSCRIBE_EXCHANGE_TICKER":
        return this.#unsubscribe(session, message, this.#directory.resolveExchanges(message));
      default:
        return badRequest("unknown event");
    }
  }

  #subscribe(
    session: LiveSession,
    message: Message,
    reply: string,
    request: SubscriptionRequest | SubscriptionError,
  ): ErrorProperties {
    const faults = messageFaults(this.faults, "subscribe", message);
    const error = findFault(faults, "error");
    if (error) return faultyErrorProperties(error);
    if ("code" in request) return { ...request };
    if (!session.scopes.has(request.scope))
      return { code: "403", message: `the token lacks the scope ${request.scope}` };

    session.subscriptions.set(request.key, request.series);
    sendConfirmation(session, reply, request, findFault(faults, "subscribed"));
    this.#ticker.replay(session, request.series, findFault(faults, "replay")?.line.numberOf("ticks") ?? 0);
    for (const fault of faults) applyConnectionFault(fault, session);
    this.#ticker.scheduleNextTick();
    return undefined;
  }

  /** The service does not confirm the end of a subscription: the ticks just stop. */
  #unsubscribe(
    session: LiveSession,
    message: Message,
    request: SubscriptionRequest | SubscriptionError,
  ): ErrorProperties {
    const faults = messageFaults(this.faults, "unsubscribe", message);
    const error = findFault(faults, "error");
    if (error) return faultyErrorProperties(error);
    if ("code" in request) return { ...request };
    if (findFault(faults, "ignore-unsubscribe")) return undefined;
    const end = () => session.subscriptions.delete(request.key);
    const late = findFault(faults, "late-unsubscribe");
    if (late) session.after(late.line.numberOf("by"), end);
    else end();
    return undefined;
  }
}

function sendConfirmation(
  session: LiveSession,
  reply: string,
  { confirmation }: SubscriptionRequest,
  fault: TriggeredFault | undefined,
): void {
  const send = () => session.sendEvent(reply, confirmation);
  switch (fault?.line.textOf("is")) {
    case "never":
      break;
    case "late":
      session.after(fault?.line.numberOf("by") ?? 0, send);
      break;
    case "other":
      if ("indexType" in confirmation)
        session.sendEvent(reply, { indexType: confirmation.indexType === "LX" ? "GWA" : "LX" });
      else session.sendEvent(reply, { exchangeId: "another", marketId: "another" });
      break;
    case "twice":
      send();
      send();
      break;
    default:
      send();
  }
}

function findFault(faults: readonly TriggeredFault[], name: string): TriggeredFault | undefined {
  return faults.find(({ line }) => line.definition.name === name);
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
