import { failureCode } from "../../model/failure.ts";
import { resolveSelector } from "../../model/selector.ts";
import { type DerivativeType, streamTable } from "../../model/streams.ts";
import { formatDay, MICROS_PER_SECOND } from "../../model/time.ts";
import { requestPriority, type ServiceRequest } from "../../service/http/request.ts";
import { walkListPages } from "../../service/pagination/list-walk.ts";
import { hasNoContracts } from "../../warehouse/coverage/rechecks.ts";
import { readDerivativeTypes } from "../../warehouse/lookups/lookup-queries.ts";
import {
  affectsWholeEndpoint,
  describeRequest,
  type SyncContext,
  type SyncStreamSettings,
  serviceNow,
} from "../context/context.ts";
import type { Directory } from "../selection/targets.ts";
import { fetchIfAllowed, recordSnapshot, storeSnapshotPages } from "./record-snapshot.ts";

const { endpoint: contractEndpoint } = streamTable.derivative_contracts;
const { endpoint: tickerEndpoint } = streamTable.derivative_ticks;

/**
 * Refreshes the contracts of one type on one exchange, including expired ones. Returns whether there are any. Most
 * exchanges have none: these are requested once per UTC day, and the warehouse stores the day.
 */
async function refreshContracts(context: SyncContext, exchangeId: string, derivativeType: DerivativeType) {
  const { client, ingest, stats, signal } = context;
  const contractCheck = { exchangeId, derivativeType, day: formatDay(serviceNow(context)) };
  if (hasNoContracts(context.reader, contractCheck)) return false;
  const query = { exchangeId, include: "ALL" };
  const list: ServiceRequest = {
    endpoint: contractEndpoint,
    params: { derivativeType },
    query,
    priority: requestPriority.head,
    mayBeMissing: true,
    signal,
  };
  const stream = "derivative_contracts";
  const pages = ingest.openPages({ stream, derivativeType });
  let rows = 0;
  try {
    for await (const page of walkListPages(client, list, pages.read)) rows += page.rows;
    const request = describeRequest(`/derivatives/contract/${derivativeType}`, query);
    const lookup = { stream, derivativeType, exchangeId, reader: pages.id, request } as const;
    stats.addLookup(stream, await ingest.call("commitLookup", lookup, signal));
  } catch (error) {
    // The spec does not say how the service reports an exchange without derivatives.
    if (failureCode(error) !== "not_found" && failureCode(error) !== "rejected") throw error;
    await ingest.call("commitNoContracts", contractCheck, signal);
    return false;
  } finally {
    pages.close();
  }
  if (rows === 0) await ingest.call("commitNoContracts", contractCheck, signal);
  return rows > 0;
}

/** Runs a task for each type, at the same time: a type whose endpoint is dead must not delay the others. */
async function settleTypes<T>(types: readonly DerivativeType[], task: (type: DerivativeType) => Promise<T>) {
  const settled = await Promise.allSettled(types.map((type) => task(type)));
  return {
    /** By type; without those that failed. */
    results: new Map(
      types.flatMap((type, i) => {
        const outcome = settled[i];
        return outcome?.status === "fulfilled" ? [[type, outcome.value] as const] : [];
      }),
    ),
    // In the order of the types, so that reports do not depend on which one failed first.
    errors: settled.flatMap((outcome): unknown[] => (outcome.status === "rejected" ? [outcome.reason] : [])),
  };
}

/**
 * Fetches the tickers of all derivative types of an exchange and records them as one snapshot. If one type fails, the
 * others are stored all the same, but nothing is covered: not all that the settings select was observed. If the service
 * denies it, the period is lost.
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
    const query = { exchangeId };
    const { results, errors } = await settleTypes(types, (derivativeType) => {
      const params = { derivativeType };
      const walk = { endpoint: tickerEndpoint, params, query, priority: requestPriority.snapshot };
      const request = describeRequest(`/derivatives/ticker/${derivativeType}`, query);
      return storeSnapshotPages(context, { stream: "derivative_ticks", request, part: derivativeType }, walk);
    });
    const [failure] = [...errors.filter((error) => failureCode(error) !== "forbidden"), ...errors];
    if (failure !== undefined) throw failure;
    const parts = [...results.values()];
    await recordSnapshot(context, { stream: "derivative_ticks", exchangeId, cadence, parts, askedAt });
  });
}

/**
 * Fetches the contracts of every selected exchange, because no endpoint lists the few exchanges that have derivatives.
 * Updates `exchangeTypes` after each exchange; an exchange whose fetch fails keeps its previous entry. A type that the
 * service denies, or whose endpoint is dead, counts as present where other types or stored contracts show that the
 * exchange has derivatives.
 */
export async function findDerivativeExchanges(
  context: SyncContext,
  exchangeTypes: Map<string, readonly DerivativeType[]>,
  settings: Exclude<SyncStreamSettings["derivatives"], false>,
  { exchanges }: Directory,
  forEachExchange: (ids: readonly string[], task: (exchangeId: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  const { ids } = resolveSelector(settings.exchanges, exchanges, undefined);
  const selected = new Set(ids);
  for (const exchangeId of exchangeTypes.keys())
    if (!selected.has(exchangeId)) exchangeTypes.delete(exchangeId);
  await forEachExchange(ids, async (exchangeId) => {
    const { results, errors } = await settleTypes(settings.types, (type) =>
      refreshContracts(context, exchangeId, type),
    );
    const failure = errors.find((error) => !affectsWholeEndpoint(error));
    if (failure !== undefined) throw failure;
    const stored = errors.length > 0 ? readDerivativeTypes(context.reader, exchangeId) : [];
    const hasOthers = [...results.values()].some((hasContracts) => hasContracts);
    const types = settings.types.filter((type) => results.get(type) ?? (hasOthers || stored.includes(type)));
    if (types.length > 0) exchangeTypes.set(exchangeId, types);
    else exchangeTypes.delete(exchangeId);
    const [denial] = errors;
    if (denial !== undefined) throw denial;
  });
}
