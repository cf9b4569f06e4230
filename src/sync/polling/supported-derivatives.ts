import { resolveSelector } from "../../model/selector.ts";
import type { DerivativeType } from "../../model/streams.ts";
import type { SyncStreamSettings } from "../context/context.ts";
import type { Directory } from "../selection/directory.ts";

/** Runs a task for each exchange. */
type ForEachExchange = (
  exchangeIds: readonly string[],
  task: (exchangeId: string) => Promise<void>,
) => Promise<void>;

/**
 * Fetches the contracts of every selected exchange, because no endpoint lists the few exchanges that have derivatives.
 * Updates `exchangeTypes` after each exchange; an exchange whose fetch fails keeps its previous entry.
 */
export async function findDerivativeExchanges(
  exchangeTypes: Map<string, readonly DerivativeType[]>,
  settings: Exclude<SyncStreamSettings["derivatives"], false>,
  { exchanges }: Directory,
  refresh: (exchangeId: string, type: DerivativeType) => Promise<boolean>,
  forEachExchange: ForEachExchange,
): Promise<void> {
  const { ids } = resolveSelector(settings.exchanges, exchanges, undefined);
  const selected = new Set(ids);
  for (const exchangeId of exchangeTypes.keys())
    if (!selected.has(exchangeId)) exchangeTypes.delete(exchangeId);
  await forEachExchange(ids, async (exchangeId) => {
    const types: DerivativeType[] = [];
    for (const type of settings.types) if (await refresh(exchangeId, type)) types.push(type);
    if (types.length > 0) exchangeTypes.set(exchangeId, types);
    else exchangeTypes.delete(exchangeId);
  });
}
