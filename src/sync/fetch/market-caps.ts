import { decodePage } from "../../ingest/decode/page.ts";
import type { MarketCap } from "../../model/records.ts";
import { decodeBody, type ResponseBody } from "../../model/response-body.ts";
import { streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND } from "../../model/time.ts";
import { requestPriority } from "../../service/http/request.ts";
import { walkListPages } from "../../service/pagination/list-walk.ts";
import { describeRequest, type SyncContext, serviceNow } from "../context/context.ts";
import { fetchIfAllowed, recordSnapshot, storeSnapshotPages } from "./record-snapshot.ts";

const stream = "market_caps";
const { endpoint } = streamTable[stream];
const filters = { percentChange: true };

/**
 * Fetches the market capitalisations and returns the asset ids, largest first. With `cadenceSeconds` it also stores them
 * as a snapshot; without, nothing is stored.
 */
export async function fetchMarketCaps(
  context: SyncContext,
  cadenceSeconds: number | undefined,
): Promise<string[]> {
  const { client, signal } = context;
  const askedAt = serviceNow(context);
  const caps: MarketCap[] = [];
  const collect = (body: ResponseBody) => {
    const { records, rawCount: rows, nextId } = decodePage(stream, decodeBody(body));
    caps.push(...records);
    return { rows, nextId };
  };
  if (cadenceSeconds === undefined) {
    const list = { endpoint, filters, priority: requestPriority.head, signal };
    for await (const _ of walkListPages(client, list, async (body) => collect(body)));
    return rankByMarketCap(caps);
  }
  const snapshot = { stream, exchangeId: null, cadence: cadenceSeconds * MICROS_PER_SECOND } as const;
  return fetchIfAllowed(context, snapshot, async () => {
    const request = describeRequest(endpoint, filters);
    const list = { endpoint, filters, priority: requestPriority.snapshot };
    const parts = [await storeSnapshotPages(context, { stream, request }, list, collect)];
    await recordSnapshot(context, { ...snapshot, parts, askedAt });
    return rankByMarketCap(caps);
  });
}

/** Sorts by rank; assets without a rank come last, by market capitalisation. */
export function rankByMarketCap(caps: readonly MarketCap[]): string[] {
  const sorted = caps.toSorted(
    (a, b) =>
      (a.rank ?? Number.MAX_SAFE_INTEGER) - (b.rank ?? Number.MAX_SAFE_INTEGER) ||
      (b.marketCap?.real ?? 0) - (a.marketCap?.real ?? 0),
  );
  return [...new Set(sorted.map(({ assetId }) => assetId))];
}
