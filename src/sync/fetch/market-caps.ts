import { decodePage } from "../../ingest/decode/page.ts";
import type { MarketCap } from "../../model/records.ts";
import { decodeBody } from "../../model/response-body.ts";
import { streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND } from "../../model/time.ts";
import { requestPriority } from "../../service/http/request.ts";
import { walkListPages } from "../../service/pagination/list-walk.ts";
import { describeRequest, type SyncContext, serviceNow } from "../context/context.ts";
import { fetchIfAllowed, recordSnapshot, SnapshotCounter } from "./record-snapshot.ts";

const { endpoint } = streamTable.market_caps;
const filters = { percentChange: true };

/**
 * Fetches the market capitalisations and returns the asset ids, largest first. With `cadenceSeconds` it also stores them
 * as a snapshot; without, nothing is stored.
 */
export async function fetchMarketCaps(
  context: SyncContext,
  cadenceSeconds: number | undefined,
): Promise<string[]> {
  if (cadenceSeconds === undefined) return fetchRankedIds(context, undefined);
  const snapshot = {
    stream: "market_caps",
    exchangeId: null,
    cadence: cadenceSeconds * MICROS_PER_SECOND,
  } as const;
  return fetchIfAllowed(context, snapshot, () => fetchRankedIds(context, cadenceSeconds));
}

async function fetchRankedIds(context: SyncContext, cadenceSeconds: number | undefined): Promise<string[]> {
  const { client, ingest, stats, signal } = context;
  const askedAt = serviceNow(context);
  const caps: MarketCap[] = [];
  const counter = new SnapshotCounter();
  const priority = cadenceSeconds === undefined ? requestPriority.head : requestPriority.snapshot;
  const list = { endpoint, filters, priority, signal };
  const pages = walkListPages(client, list, async (body) => {
    const { records } = decodePage("market_caps", decodeBody(body));
    return { records, ...(await ingest.call("readPage", { stream: "market_caps" }, [body], signal)) };
  });
  for await (const { page } of pages) {
    caps.push(...page.records);
    if (cadenceSeconds === undefined) {
      await ingest.call("dropPages", [page.pageId]);
      continue;
    }
    const snapshot = {
      stream: "market_caps",
      pageId: page.pageId,
      request: describeRequest(endpoint, filters),
    } as const;
    const commit = await ingest.call("commitSnapshot", snapshot, [], signal);
    stats.addRows("market_caps", commit.written, commit);
    counter.add(commit);
  }
  if (cadenceSeconds !== undefined) {
    const cadence = cadenceSeconds * MICROS_PER_SECOND;
    await recordSnapshot(context, {
      stream: "market_caps",
      exchangeId: null,
      cadence,
      parts: [counter.toResult()],
      askedAt,
    });
  }
  return rankByMarketCap(caps);
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
