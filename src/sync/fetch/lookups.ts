import type { LookupCommitResult } from "../../ingest/commit/lookup.ts";
import { requestPriority } from "../../service/http/request.ts";
import { describeRequest, fetchListPages, type SyncContext } from "../context/context.ts";

export const lookupEndpoints = { assets: "/asset", markets: "/market", exchanges: "/exchange" } as const;
export type LookupStream = keyof typeof lookupEndpoints;

/** Refreshes one lookup. Uses no filter: a filter by status would miss MAINTENANCE. */
export async function refreshLookup(context: SyncContext, stream: LookupStream): Promise<LookupCommitResult> {
  const { ingest, log, stats, signal } = context;
  const endpoint = lookupEndpoints[stream];
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
