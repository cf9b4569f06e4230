import { select } from "../model/selector.ts";
import type { DerivativeType } from "../model/series.ts";
import type { Directory } from "./directory.ts";
import type { SyncedStreams } from "./sync-settings.ts";

/** Which types of derivatives each exchange has. */
export type SupportedDerivatives = ReadonlyMap<string, readonly DerivativeType[]>;

/** How a list of exchanges is gone through, one errand each. */
export type Errands = (
  exchangeIds: readonly string[],
  errand: (exchangeId: string) => Promise<void>,
) => Promise<void>;

const oneByOne: Errands = async (exchangeIds, errand) => {
  for (const exchangeId of exchangeIds) await errand(exchangeId);
};

/** Asks every selected exchange for its contracts: only seven have any, and which is found out by asking. */
export async function supportedDerivatives(
  asked: Exclude<SyncedStreams["derivatives"], false>,
  { exchanges }: Directory,
  refresh: (exchangeId: string, type: DerivativeType) => Promise<boolean>,
  errands: Errands = oneByOne,
): Promise<SupportedDerivatives> {
  const supported = new Map<string, DerivativeType[]>();
  await errands(select(asked.exchanges, exchanges, undefined).ids, async (exchangeId) => {
    const types: DerivativeType[] = [];
    for (const type of asked.types) if (await refresh(exchangeId, type)) types.push(type);
    if (types.length > 0) supported.set(exchangeId, types);
  });
  return supported;
}
