import type { FaultScript, Strike } from "../faults/script.ts";
import { messageStrikes, strikeConnection } from "./faults.ts";
import { errorProperties } from "./frames.ts";
import type { PongLog } from "./pong-log.ts";
import type { LiveSession } from "./session.ts";
import type { LiveDirectory, Refusal, SubscriptionRequest } from "./subscriptions.ts";
import type { LiveTicker } from "./ticker.ts";

type Message = Readonly<Record<string, unknown>>;

/** Properties of the ERROR that a message earned; undefined when it was fine. */
type Complaint = Record<string, unknown> | undefined;

/** What the server says to each message of a client. */
export class LiveDialogue {
  faults: FaultScript | undefined;
  readonly #directory: LiveDirectory;
  readonly #ticker: LiveTicker;
  readonly #pongs: PongLog;

  constructor(directory: LiveDirectory, ticker: LiveTicker, pongs: PongLog) {
    this.#pongs = pongs;
    this.#directory = directory;
    this.#ticker = ticker;
  }

  receive(session: LiveSession, text: string): void {
    const message = readMessage(text);
    const complaint = message ? this.#answer(session, message) : refusal("a message is a JSON object");
    if (complaint) session.say("ERROR", complaint);
  }

  #answer(session: LiveSession, message: Message): Complaint {
    const { event, requestId } = message;
    switch (event) {
      case "PING":
        session.say("PONG", requestId === undefined ? {} : { requestId });
        return undefined;
      case "PONG": {
        session.owesPong = false;
        const ms = session.answeredMs(requestId);
        if (ms !== undefined) this.#pongs.add(ms);
        return undefined;
      }
      case "SUBSCRIBE_INDEX_TICKER":
        return this.#subscribe(session, message, "SUBSCRIBED_INDEX_TICKER", this.#directory.index(message));
      case "SUBSCRIBE_EXCHANGE_TICKER":
        return this.#subscribe(
          session,
          message,
          "SUBSCRIBED_EXCHANGE_TICKER",
          this.#directory.exchange(message),
        );
      case "UNSUBSCRIBE_INDEX_TICKER":
        return this.#unsubscribe(session, message, this.#directory.index(message));
      case "UNSUBSCRIBE_EXCHANGE_TICKER":
        return this.#unsubscribe(session, message, this.#directory.exchange(message));
      default:
        return refusal("unknown event");
    }
  }

  #subscribe(
    session: LiveSession,
    message: Message,
    reply: string,
    request: SubscriptionRequest | Refusal,
  ): Complaint {
    const strikes = messageStrikes(this.faults, "subscribe", message);
    const error = struckBy(strikes, "error");
    if (error) return errorProperties(error);
    if ("code" in request) return { ...request };
    if (!session.scopes.has(request.scope))
      return { code: "403", message: `the token lacks the scope ${request.scope}` };

    session.subscriptions.set(request.key, request.series);
    confirm(session, reply, request, struckBy(strikes, "subscribed"));
    this.#ticker.replay(session, request.series, struckBy(strikes, "replay")?.line.numberOf("ticks") ?? 0);
    for (const strike of strikes) strikeConnection(strike, session);
    this.#ticker.keepTicking();
    return undefined;
  }

  /** No message confirms the end of a subscription: the ticks just stop. */
  #unsubscribe(session: LiveSession, message: Message, request: SubscriptionRequest | Refusal): Complaint {
    const strikes = messageStrikes(this.faults, "unsubscribe", message);
    const error = struckBy(strikes, "error");
    if (error) return errorProperties(error);
    if ("code" in request) return { ...request };
    if (struckBy(strikes, "ignore-unsubscribe")) return undefined;
    const end = () => session.subscriptions.delete(request.key);
    const late = struckBy(strikes, "late-unsubscribe");
    if (late) session.after(late.line.numberOf("by"), end);
    else end();
    return undefined;
  }
}

function confirm(
  session: LiveSession,
  reply: string,
  { confirmed }: SubscriptionRequest,
  strike: Strike | undefined,
): void {
  const say = () => session.say(reply, confirmed);
  switch (strike?.line.textOf("is")) {
    case "never":
      break;
    case "late":
      session.after(strike?.line.numberOf("by") ?? 0, say);
      break;
    case "other":
      if ("indexType" in confirmed)
        session.say(reply, { indexType: confirmed.indexType === "LX" ? "GWA" : "LX" });
      else session.say(reply, { exchangeId: "another", marketId: "another" });
      break;
    case "twice":
      say();
      say();
      break;
    default:
      say();
  }
}

function struckBy(strikes: readonly Strike[], word: string): Strike | undefined {
  return strikes.find(({ line }) => line.word.word === word);
}

const refusal = (message: string) => ({ code: "400", message });

function readMessage(text: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(text);
    const isObject = typeof message === "object" && message !== null && !Array.isArray(message);
    return isObject ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}
