import { Failure } from "../../model/failure.ts";
import {
  decodeBody,
  malformedBodyFailure,
  noListFailure,
  type ResponseBody,
} from "../../model/response-body.ts";
import { streamTable } from "../../model/streams.ts";
import { type Micros, parseServiceTimestamp } from "../../model/time.ts";
import { requestPriority } from "../../service/http/request.ts";
import type { ExchangeSubscription } from "../../service/live/messages.ts";
import type { SyncContext } from "../context/context.ts";

/** An older response comes from a cache and may lack the newest ticks. */
const MAX_RESPONSE_AGE_MS = 5_000;

/**
 * True if REST has no tick newer than the last one received: then the market is quiet. Throws if the response
 * is inconclusive.
 */
export async function checkQuietMarket(
  context: Pick<SyncContext, "client" | "signal">,
  subscription: ExchangeSubscription,
  lastTickTs: Micros | undefined,
): Promise<boolean> {
  const { timestamps, isCached } = await context.client.request(
    {
      endpoint: streamTable.exchange_ticks.endpoint,
      // The first page is enough: the service refreshes all ticks of a subscription together.
      query: { exchangeId: subscription.exchangeId, marketId: subscription.marketId },
      priority: requestPriority.head,
      signal: context.signal,
      maxAttempts: 2,
    },
    async (body) => ({ timestamps: readTimestamps(body), isCached: body.ageMs > MAX_RESPONSE_AGE_MS }),
  );
  const newest = timestamps.reduce((latest, ts) => Math.max(latest, ts), 0);
  if (newest > (lastTickTs ?? Number.POSITIVE_INFINITY)) return false;
  // A cached response may lack newer ticks. If the feed received ticks before, REST must have some too.
  if (isCached) throw inconclusiveFailure("the response comes from a cache");
  if (newest > 0) return lastTickTs !== undefined;
  if (timestamps.length > 0 || lastTickTs !== undefined)
    throw inconclusiveFailure("the response has no tick at all");
  return true;
}

function readTimestamps(body: ResponseBody): Micros[] {
  let response: unknown;
  try {
    response = JSON.parse(Buffer.from(decodeBody(body)).toString());
  } catch {
    throw malformedBodyFailure("not JSON");
  }
  const content: unknown = (response as { content?: unknown } | null)?.content;
  if (content === null) return [];
  if (!Array.isArray(content)) throw noListFailure("no content");
  return content.map(
    (record: { timestamp?: unknown } | null) => parseServiceTimestamp(record?.timestamp) ?? 0,
  );
}

function inconclusiveFailure(why: string): Failure {
  return new Failure(`cannot determine whether the market is quiet: ${why}`, {
    code: "doubtful_list",
  });
}
