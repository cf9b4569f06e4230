import type { LookupCommitResult } from "../../ingest/commit/lookup.ts";
import { failureCode } from "../../model/failure.ts";
import { type Stream, streamTable } from "../../model/streams.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import { withTimeout } from "../../runtime/timeouts.ts";
import { requestPriority } from "../../service/http/request.ts";
import { walkListPages } from "../../service/pagination/list-walk.ts";
import { readServiceIdentity } from "../../warehouse/lookups/service-identity.ts";
import { describeRequest, retryUntilDone, type SyncContext } from "../context/context.ts";

/** The lookups that consist of one list. Contracts have a list per exchange and type. */
export const wholeLookups = ["assets", "markets", "exchanges"] as const satisfies readonly Stream[];
export type LookupStream = (typeof wholeLookups)[number];

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
async function withWholeList<T>(
  context: SyncContext,
  stream: LookupStream,
  commit: (reader: number) => Promise<T>,
): Promise<T> {
  const { client, ingest, signal } = context;
  const list = { endpoint: streamTable[stream].endpoint, priority: requestPriority.head, signal };
  for (let answers = 1; ; answers++) {
    const pages = ingest.openPages({ stream });
    try {
      for await (const _ of walkListPages(client, list, pages.read));
      return await commit(pages.id);
    } catch (error) {
      const isRepeated = isSaidEnough("other service", answers);
      if (isRepeated || failureCode(error) !== "other_service") throw error;
    } finally {
      pages.close();
    }
  }
}

interface ConfirmServiceOptions {
  /** Whether the operator lets the warehouse change to another service. */
  readonly mayAdopt: boolean;
  /** Whether to compare the assets at the known address too; the first refresh of the lookups does that anyway. */
  readonly checksKnownAddress: boolean;
}

/** The live feed must not wait longer for REST, if the address is the known one. */
const KNOWN_ADDRESS_TIMEOUT_MS = 5_000;

/**
 * Compares the service with the one that the warehouse belongs to, before anything is stored. Throws `other_service` if it
 * is another one. At a new address nothing goes on until the service has listed its assets.
 */
export async function confirmService(
  context: SyncContext,
  { mayAdopt, checksKnownAddress }: ConfirmServiceOptions,
): Promise<void> {
  const { client, clock, reader, log, signal } = context;
  const known = readServiceIdentity(reader, "assets");
  if (known.ids.size === 0) return;
  const compare = async (until: AbortSignal) => {
    const bounded = { ...context, signal: until };
    const change = await withWholeList(bounded, "assets", (reader) =>
      context.ingest.call("commitService", { serviceUrl: client.address, reader, mayAdopt }, until),
    );
    const addresses = { from: known.url, to: client.address };
    if (change === "moved") log.info(addresses, "service address changed");
    if (change === "adopted") log.warn(addresses, "warehouse adopted another service");
  };
  if (known.url !== client.address || mayAdopt) return retryUntilDone(context, () => compare(signal));
  if (!checksKnownAddress) return;
  try {
    await withTimeout({ clock, ms: KNOWN_ADDRESS_TIMEOUT_MS, stopping: signal }, compare);
  } catch (error) {
    // Whatever else failed: the address is right, and the other requests report and retry it.
    if (failureCode(error) === "other_service" || signal.aborted) throw error;
  }
}
