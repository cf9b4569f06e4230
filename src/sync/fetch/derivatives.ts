import type { SnapshotPart } from "../../ingest/commit/snapshot.ts";
import { failureCode } from "../../model/failure.ts";
import { type DerivativeType, streamTable } from "../../model/streams.ts";
import { formatDay, MICROS_PER_SECOND } from "../../model/time.ts";
import { requestPriority } from "../../service/http/request.ts";
import type { ListWalkOptions } from "../../service/pagination/list-walk.ts";
import { describeRequest, fetchListPages, type SyncContext, serviceNow } from "../context/context.ts";
import { fetchIfAllowed, recordSnapshot, SnapshotCounter } from "./record-snapshot.ts";

const { endpoint: contractEndpoint } = streamTable.derivative_contracts;
const { endpoint: tickerEndpoint } = streamTable.derivative_ticks;

/**
 * Refreshes the contracts of one type on one exchange, including expired ones. Returns whether there are any. Most
 * exchanges have none: these are requested once per UTC day, and the warehouse stores the day.
 */
export async function refreshContracts(
  context: SyncContext,
  exchangeId: string,
  derivativeType: DerivativeType,
): Promise<boolean> {
  const { ingest, stats, signal } = context;
  const contractCheck = { exchangeId, derivativeType, day: formatDay(serviceNow(context)) };
  if (await ingest.call("hasNoContracts", contractCheck, [], signal)) return false;
  const filters = { exchangeId, include: "ALL" };
  const list: ListWalkOptions = {
    endpoint: contractEndpoint,
    params: { derivativeType },
    filters,
    priority: requestPriority.head,
    mayBeMissing: true,
  };
  const stream = "derivative_contracts";
  const pageIds: number[] = [];
  let rows = 0;
  try {
    for await (const { page } of fetchListPages(context, list, { stream, derivativeType })) {
      pageIds.push(page.pageId);
      rows += page.rows;
    }
  } catch (error) {
    // The spec does not say how the service reports an exchange without derivatives.
    if (failureCode(error) !== "not_found" && failureCode(error) !== "rejected") throw error;
    await ingest.call("commitNoContracts", contractCheck, [], signal);
    return false;
  }
  const request = describeRequest(`/derivatives/contract/${derivativeType}`, filters);
  const lookup = { stream, derivativeType, exchangeId, pageIds, request } as const;
  const commit = await ingest.call("commitLookup", lookup, [], signal);
  stats.addLookup(stream, commit);
  if (rows === 0) await ingest.call("commitNoContracts", contractCheck, [], signal);
  return rows > 0;
}

/**
 * Fetches the tickers of all derivative types of an exchange and records them as one snapshot. If the service denies one
 * type, the others are stored all the same, but the period is lost: not all that the settings select was observed.
 */
export async function fetchDerivativeTicks(
  context: SyncContext,
  exchangeId: string,
  types: readonly DerivativeType[],
  cadenceSeconds: number,
): Promise<void> {
  const cadence = cadenceSeconds * MICROS_PER_SECOND;
  await fetchIfAllowed(context, { stream: "derivative_ticks", exchangeId, cadence }, async () => {
    const askedAt = serviceNow(context);
    const parts: SnapshotPart[] = [];
    let denial: unknown;
    for (const derivativeType of types) {
      try {
        parts.push(await fetchTicksOfType(context, exchangeId, derivativeType));
      } catch (error) {
        if (failureCode(error) !== "forbidden") throw error;
        denial ??= error;
      }
    }
    if (denial !== undefined) throw denial;
    await recordSnapshot(context, { stream: "derivative_ticks", exchangeId, cadence, parts, askedAt });
  });
}

async function fetchTicksOfType(
  context: SyncContext,
  exchangeId: string,
  derivativeType: DerivativeType,
): Promise<SnapshotPart> {
  const { ingest, stats, signal } = context;
  const stream = "derivative_ticks";
  const counter = new SnapshotCounter();
  const filters = { exchangeId };
  const list: ListWalkOptions = {
    endpoint: tickerEndpoint,
    params: { derivativeType },
    filters,
    priority: requestPriority.snapshot,
  };
  for await (const { page } of fetchListPages(context, list, { stream, derivativeType })) {
    const request = describeRequest(`/derivatives/ticker/${derivativeType}`, filters);
    const commit = await ingest.call("commitSnapshot", { stream, pageId: page.pageId, request }, [], signal);
    stats.addRows(stream, commit.written, commit);
    counter.add(commit);
  }
  return counter.toResult(derivativeType);
}
