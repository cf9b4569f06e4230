import { decodeBody } from "../model/body.ts";
import { formatInstant, type Micros, parseInstant } from "../model/instant.ts";
import { type Ask, priority } from "../service/endpoints.ts";
import type { Subscription } from "../service/feed-messages.ts";
import { type Intake, serviceNow } from "./intake.ts";

/** True when REST has no tick that is newer than the last one heard: the market is quiet, not the socket dead. */
export async function isQuiet(
  intake: Intake,
  subscription: Subscription,
  lastTick: Micros | undefined,
): Promise<boolean> {
  const newest = await intake.client.request(questionAbout(intake, subscription), async (body) => {
    const { content } = JSON.parse(Buffer.from(decodeBody(body)).toString()) as {
      content?: { timestamp?: unknown }[];
    };
    const moments = (content ?? []).map(({ timestamp }) =>
      typeof timestamp === "string" ? (parseInstant(timestamp) ?? 0) : 0,
    );
    return moments.reduce((latest, moment) => Math.max(latest, moment), 0);
  });
  return newest === 0 || (lastTick !== undefined && newest <= lastTick);
}

/** Of several pages the first will do: whatever the feed subscribes to is refreshed as a whole. */
function questionAbout(intake: Intake, subscription: Subscription): Ask {
  const usual = { priority: priority.head, signal: intake.signal, attempts: 2 };
  if (subscription.source === "exchange") {
    const { exchangeId, marketId } = subscription;
    return { ...usual, endpoint: "/exchange-ticker", query: { exchangeId, marketId } };
  }
  const { indexId, indexType } = subscription;
  const query = { indexId, indexType, timestamp: formatInstant(serviceNow(intake)), size: 1 };
  return { ...usual, endpoint: "/index-ticker", query };
}
