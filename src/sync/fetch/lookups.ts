import type { LookupCommit } from "../../ingest/commit/lookup.ts";
import { type Stream, streamTable } from "../../model/streams.ts";
import { priority } from "../../service/http/request.ts";
import { heldPages, type Intake, requestText } from "../context/context.ts";

/** The lookups that are one list each; contracts are a list per exchange and type. */
export const wholeLookups = ["assets", "markets", "exchanges"] as const satisfies readonly Stream[];
export type LookupStream = (typeof wholeLookups)[number];

/** Brings one lookup in step with the service. Asked without filters: a filter by status would miss MAINTENANCE. */
export async function refreshLookup(intake: Intake, stream: LookupStream): Promise<LookupCommit> {
  const { ingest, log, tally, signal } = intake;
  const { endpoint } = streamTable[stream];
  const held: number[] = [];
  const list = { endpoint, priority: priority.head };
  for await (const { page } of heldPages(intake, list, { stream })) held.push(page.held);
  const commit = await ingest.call(
    "commitLookup",
    { stream, held, request: requestText(endpoint) },
    [],
    signal,
  );
  tally.listed(stream, commit);
  if (commit.incident) {
    log.error({ stream, ...commit.incident }, "the list has shrunk beyond belief: nothing is taken off it");
  }
  return commit;
}
