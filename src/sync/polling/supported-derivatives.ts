import { select } from "../../model/selector.ts";
import type { DerivativeType } from "../../model/streams.ts";
import type { SyncedStreams } from "../context/context.ts";
import type { Directory } from "../selection/directory.ts";

/** How a list of exchanges is gone through, one errand each. */
export type Errands = (
  exchangeIds: readonly string[],
  errand: (exchangeId: string) => Promise<void>,
) => Promise<void>;

/**
 * Asks every selected exchange for its contracts: only seven have any, and which is found out by asking. `supported` is brought
 * up to date exchange by exchange; one that could not be asked keeps what was known of it.
 */
export async function findSupported(
  supported: Map<string, readonly DerivativeType[]>,
  asked: Exclude<SyncedStreams["derivatives"], false>,
  { exchanges }: Directory,
  refresh: (exchangeId: string, type: DerivativeType) => Promise<boolean>,
  errands: Errands,
): Promise<void> {
  const { ids } = select(asked.exchanges, exchanges, undefined);
  const selected = new Set(ids);
  for (const exchangeId of supported.keys()) if (!selected.has(exchangeId)) supported.delete(exchangeId);
  await errands(ids, async (exchangeId) => {
    const types: DerivativeType[] = [];
    for (const type of asked.types) if (await refresh(exchangeId, type)) types.push(type);
    if (types.length > 0) supported.set(exchangeId, types);
    else supported.delete(exchangeId);
  });
}
