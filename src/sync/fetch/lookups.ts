import type { LookupCommitResult } from "../../ingest/commit/lookup.ts";
import { type Stream, streamTable } from "../../model/streams.ts";
import { requestPriority } from "../../service/http/request.ts";
import { describeRequest, fetchListPages, type SyncContext } from "../context/context.ts";

/** The lookups that consist of one list. Contracts have a list per exchange and type. */
export const wholeLookups = ["assets", "markets", "exchanges"] as const satisfies readonly Stream[];
export type LookupStream = (typeof wholeLookups)[number];

/** Refreshes one lookup. Uses no filter, because a filter by status would miss entries in MAINTENANCE. */
export async function refreshLookup(context: SyncContext, stream: LookupStream): Promise<LookupCommitResult> {
  const { ingest, log, stats, signal } = context;
  const { endpoint } = streamTable[stream];
  const pageIds: number[] = [];
  const list = { endpoint, priority: requestPriority.head };
  for await (const { page } of fetchListPages(context, list, { stream })) pageIds.push(page.pageId);
  const commit = await ingest.call(
    "commitLookup",
    { stream, pageIds, request: describeRequest(endpoint) },
    [],
    signal,
  );
  stats.addLookup(stream, commit);
  if (commit.incident) {
    log.error({ stream, ...commit.incident }, "lookup shrank too much, nothing delisted");
  }
  return commit;
}
