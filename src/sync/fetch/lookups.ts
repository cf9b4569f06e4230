import type { LookupCommitResult } from "../../ingest/commit/lookup.ts";
import { failureCode } from "../../model/failure.ts";
import { type Stream, streamTable } from "../../model/streams.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import { requestPriority } from "../../service/http/request.ts";
import { describeRequest, fetchListPages, type SyncContext } from "../context/context.ts";

/** The lookups that consist of one list. Contracts have a list per exchange and type. */
export const wholeLookups = ["assets", "markets", "exchanges"] as const satisfies readonly Stream[];
export type LookupStream = (typeof wholeLookups)[number];

/** Refreshes one lookup. */
export async function refreshLookup(context: SyncContext, stream: LookupStream): Promise<LookupCommitResult> {
  const { ingest, log, stats, signal } = context;
  const request = describeRequest(streamTable[stream].endpoint);
  const { address: serviceUrl } = context.client;
  const commit = await withWholeList(context, stream, (reader) =>
    ingest.call("commitLookup", { stream, reader, request, serviceUrl }, signal),
  );
  stats.addLookup(stream, commit);
  if (commit.incident) {
    log.error({ stream, ...commit.incident }, "lookup shrank too much, nothing delisted");
  }
  return commit;
}

/**
 * Fetches all pages of a lookup and commits them. A list of another service is fetched twice: one wrong answer must not end
 * a daemon. Uses no filter, because a filter by status would miss entries in MAINTENANCE.
 */
export async function withWholeList<T>(
  context: SyncContext,
  stream: LookupStream,
  commit: (reader: number) => Promise<T>,
): Promise<T> {
  const list = { endpoint: streamTable[stream].endpoint, priority: requestPriority.head };
  for (let answers = 1; ; answers++) {
    const pages = context.ingest.openPages({ stream });
    try {
      for await (const _ of fetchListPages(context, list, pages));
      return await commit(pages.id);
    } catch (error) {
      const isRepeated = isSaidEnough("other service", answers);
      if (isRepeated || failureCode(error) !== "other_service") throw error;
    } finally {
      pages.close();
    }
  }
}
