import { resolveSelector } from "../../model/selector.ts";
import type { DerivativeType } from "../../model/streams.ts";
import { readDerivativeTypes } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncStreamSettings } from "../context/context.ts";
import { affectsWholeEndpoint } from "../context/error-policy.ts";
import { settleTypes } from "../fetch/derivatives.ts";
import type { Directory } from "../selection/directory.ts";

/** Runs a task for each exchange. */
type ForEachExchange = (
  exchangeIds: readonly string[],
  task: (exchangeId: string) => Promise<void>,
) => Promise<void>;

interface FindDerivativesOptions {
  readonly reader: Connection;
  /** Refreshes the contracts of one type; returns whether there are any. */
  readonly refresh: (exchangeId: string, type: DerivativeType) => Promise<boolean>;
  readonly forEachExchange: ForEachExchange;
}

/**
 * Fetches the contracts of every selected exchange, because no endpoint lists the few exchanges that have derivatives.
 * Updates `exchangeTypes` after each exchange; an exchange whose fetch fails keeps its previous entry. A type that the
 * service denies, or whose endpoint is dead, counts as present where other types or stored contracts show that the
 * exchange has derivatives.
 */
export async function findDerivativeExchanges(
  exchangeTypes: Map<string, readonly DerivativeType[]>,
  settings: Exclude<SyncStreamSettings["derivatives"], false>,
  { exchanges }: Directory,
  { reader, refresh, forEachExchange }: FindDerivativesOptions,
): Promise<void> {
  const { ids } = resolveSelector(settings.exchanges, exchanges, undefined);
  const selected = new Set(ids);
  for (const exchangeId of exchangeTypes.keys())
    if (!selected.has(exchangeId)) exchangeTypes.delete(exchangeId);
  await forEachExchange(ids, async (exchangeId) => {
    const { results, errors } = await settleTypes(settings.types, (type) => refresh(exchangeId, type));
    const failure = [...errors.values()].find((error) => !affectsWholeEndpoint(error));
    if (failure !== undefined) throw failure;
    const stored = errors.size > 0 ? readDerivativeTypes(reader, exchangeId) : [];
    const hasOthers = [...results.values()].some((hasContracts) => hasContracts);
    const types = settings.types.filter((type) => results.get(type) ?? (hasOthers || stored.includes(type)));
    if (types.length > 0) exchangeTypes.set(exchangeId, types);
    else exchangeTypes.delete(exchangeId);
    const [denial] = errors.values();
    if (denial !== undefined) throw denial;
  });
}
