import type { ForbiddenSnapshot, SnapshotList } from "../../ingest/commit/snapshot.ts";
import { decodePage } from "../../ingest/decode/decode-page.ts";
import { Failure, failureCode } from "../../model/failure.ts";
import type { MarketCap } from "../../model/records.ts";
import { decodeBody, type ResponseBody } from "../../model/response-body.ts";
import { streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Snapshot, SnapshotPart, SnapshotProblem } from "../../rule/snapshot.ts";
import { requestPriority, type ServiceRequest } from "../../service/http/request.ts";
import { walkListPages } from "../../service/pagination/list-walk.ts";
import { describeRequest, type SyncContext, serviceNow } from "../context/context.ts";
import { fetchAllRecords } from "./fetch-records.ts";

const incompleteReasons: Readonly<Record<SnapshotProblem, string>> = {
  unreadable: "most of its records could not be read",
  shrunken: "it has less than half as many records as before",
  empty: "it has no records",
};

/** Fetches a list, stores its pages as they come, and sums them up. `part`: the derivative type. */
export async function storeSnapshotPages(
  { client, ingest, stats, signal }: SyncContext,
  { part = "", ...list }: SnapshotList & { readonly part?: string },
  walk: ServiceRequest,
  onBody: (body: ResponseBody) => void = () => {},
): Promise<SnapshotPart> {
  const reader = ingest.openPages({ stream: list.stream, derivativeType: part });
  const read = async (body: ResponseBody) => {
    onBody(body);
    return reader.read(body);
  };
  let [listed, rejected] = [0, 0];
  const timestamps: Micros[] = [];
  const storedTimestamps: Micros[] = [];
  try {
    for await (const _ of walkListPages(client, { ...walk, signal }, read))
      for (const commit of await ingest.call("commitSnapshot", { ...list, reader: reader.id }, signal)) {
        stats.addRows(list.stream, commit.written, commit);
        listed += commit.listed;
        rejected += commit.rejected;
        if (commit.newest !== undefined) timestamps.push(commit.newest);
        if (commit.newestStored !== undefined) storedTimestamps.push(commit.newestStored);
      }
  } finally {
    reader.close();
  }
  return { part, listed, rejected, timestamps, storedTimestamps };
}

/** Runs the fetch of a snapshot. If the service denies access to it, records the present period as lost. */
export async function fetchIfAllowed<T>(
  { ingest, signal }: SyncContext,
  snapshot: ForbiddenSnapshot,
  fetch: () => Promise<T>,
): Promise<T> {
  try {
    return await fetch();
  } catch (error) {
    if (failureCode(error) === "forbidden") await ingest.call("commitForbiddenSnapshot", snapshot, signal);
    throw error;
  }
}

/** Records the coverage of a fetched snapshot. Throws if the snapshot looks incomplete; then nothing is covered. */
export async function recordSnapshot(context: SyncContext, collected: Snapshot): Promise<void> {
  const snapshot = { ...collected, answeredAt: serviceNow(context) };
  const problem = await context.ingest.call("commitSnapshotCoverage", snapshot, context.signal);
  if (problem === undefined) return;
  throw new Failure(
    `the snapshot of ${snapshot.stream.replace("_", " ")} looks incomplete: ${incompleteReasons[problem]}`,
    {
      code: "doubtful_list",
      remedy: "the next fetch covers it if it is complete; unreadable records are in rejects",
    },
  );
}

const stream = "market_caps";
const { endpoint } = streamTable[stream];
const query = { percentChange: true };

/**
 * Fetches the market capitalisations and returns the asset ids, largest first. With `cadenceSeconds` it also stores them
 * as a snapshot; without, nothing is stored.
 */
export async function fetchMarketCaps(context: SyncContext, cadenceSeconds: number | undefined) {
  if (cadenceSeconds === undefined)
    return rankByMarketCap(await fetchAllRecords(context.client, stream, context.signal));
  const askedAt = serviceNow(context);
  const caps: MarketCap[] = [];
  const collect = (body: ResponseBody) => void caps.push(...decodePage(stream, decodeBody(body)).records);
  const snapshot = { stream, exchangeId: null, cadence: cadenceSeconds * MICROS_PER_SECOND } as const;
  return fetchIfAllowed(context, snapshot, async () => {
    const request = describeRequest(endpoint, query);
    const list = { endpoint, query, priority: requestPriority.snapshot };
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
