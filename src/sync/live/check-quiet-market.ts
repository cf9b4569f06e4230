import { Failure } from "../../model/failure.ts";
import { type Body, decodeBody, malformedBody } from "../../model/response-body.ts";
import { streamTable } from "../../model/streams.ts";
import { formatInstant, type Micros, parseInstant } from "../../model/time.ts";
import { type Ask, priority } from "../../service/http/request.ts";
import type { Subscription } from "../../service/live/messages.ts";
import { type Intake, serviceNow } from "../context/context.ts";

/** A cache on the way may have kept an answer for so long, and it still is of the present. */
const FRESH_MS = 5_000;

/**
 * True when REST has no tick that is newer than the last one heard: the market is quiet, not the socket dead. Throws where
 * that cannot be told from the answer.
 */
export async function isQuiet(
  intake: Pick<Intake, "client" | "clock" | "signal">,
  subscription: Subscription,
  lastTick: Micros | undefined,
): Promise<boolean> {
  const { moments, isKept } = await intake.client.request(
    questionAbout(intake, subscription),
    async (body) => ({ moments: momentsOf(body), isKept: body.ageMs > FRESH_MS }),
  );
  const newest = moments.reduce((latest, moment) => Math.max(latest, moment), 0);
  if (newest > (lastTick ?? Number.POSITIVE_INFINITY)) return false;
  // An old page cannot know what came since; and where ticks were heard, there are some.
  if (isKept) throw doubtful("a cache on the way has kept the answer");
  if (newest > 0) return lastTick !== undefined;
  if (moments.length > 0 || lastTick !== undefined) throw doubtful("it tells of no tick at all");
  return true;
}

function momentsOf(body: Body): Micros[] {
  let answer: unknown;
  try {
    answer = JSON.parse(Buffer.from(decodeBody(body)).toString());
  } catch {
    throw malformedBody("not JSON");
  }
  const content: unknown = (answer as { content?: unknown } | null)?.content;
  if (!Array.isArray(content)) throw malformedBody("no content");
  return content.map((record: { timestamp?: unknown } | null) =>
    typeof record?.timestamp === "string" ? (parseInstant(record.timestamp) ?? 0) : 0,
  );
}

function doubtful(why: string): Failure {
  return new Failure(`whether the market is quiet cannot be told: ${why}`, {
    family: "retry",
    code: "doubtful_list",
  });
}

/** Of several pages the first will do: whatever the feed subscribes to is refreshed as a whole. */
function questionAbout(intake: Pick<Intake, "client" | "clock" | "signal">, subscription: Subscription): Ask {
  const usual = { priority: priority.head, signal: intake.signal, attempts: 2 };
  if (subscription.source === "exchange") {
    const { exchangeId, marketId } = subscription;
    return { ...usual, endpoint: streamTable.exchange_ticks.endpoint, query: { exchangeId, marketId } };
  }
  const { indexId, indexType } = subscription;
  const query = { indexId, indexType, timestamp: formatInstant(serviceNow(intake)), size: 1 };
  return { ...usual, endpoint: streamTable.index_ticks.endpoint, query };
}
