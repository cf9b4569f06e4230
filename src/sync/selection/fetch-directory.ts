import type { StreamRecords } from "../../model/records.ts";
import type { Micros } from "../../model/time.ts";
import type { ServiceClient } from "../../service/client/client.ts";
import { readRanking } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import { fetchAllRecords } from "../fetch/fetch-records.ts";
import { fetchLiquidIndices, fetchLiquidNames, liquidCandidates } from "../fetch/liquid-indices.ts";
import { rankByMarketCap } from "../fetch/record-snapshot.ts";
import { needsLiquidIndices, needsRanking } from "./selectors.ts";
import {
  type Directory,
  readStoredDirectory,
  toAssetCandidate,
  toExchangeCandidate,
  toMarketCandidate,
} from "./targets.ts";

/** Reads the directory without writing anything: from the warehouse where possible, otherwise from the service. */
export async function fetchDirectory(
  settings: SyncSettings,
  reader: Connection | undefined,
  client: ServiceClient | undefined,
  now: () => Micros,
  signal: AbortSignal,
): Promise<Directory> {
  const stored = reader ? readStoredDirectory(reader) : { GWA: [], MWA: [], exchanges: [] };
  const fetchList = async <S extends Parameters<typeof fetchAllRecords>[1]>(stream: S) =>
    client ? fetchAllRecords(client, stream, signal) : ([] as StreamRecords[S][]);
  const GWA = stored.GWA.length > 0 ? stored.GWA : (await fetchList("assets")).map(toAssetCandidate);
  const symbols = new Map(GWA.map(({ id, labels: [symbol] }) => [id, symbol]));
  const pairOf = (base: string | null, quote: string | null) =>
    `${symbols.get(base ?? "") ?? ""}/${symbols.get(quote ?? "") ?? ""}`;
  const fetchMarkets = async () =>
    (await fetchList("markets")).map(({ id, baseAssetId, quoteAssetId }) =>
      toMarketCandidate(id, baseAssetId, pairOf(baseAssetId, quoteAssetId)),
    );
  const fetchExchanges = async () => (await fetchList("exchanges")).map(toExchangeCandidate);
  const lookups = {
    GWA,
    MWA: stored.MWA.length > 0 ? stored.MWA : await fetchMarkets(),
    exchanges: stored.exchanges.length > 0 ? stored.exchanges : await fetchExchanges(),
  };
  const storedIds = reader && readRanking(reader);
  const caps = storedIds === undefined && needsRanking(settings) ? await fetchList("market_caps") : [];
  let liquid = liquidCandidates(settings.lxIndexIds, reader, []);
  if (liquid.length === 0 && needsLiquidIndices(settings) && client) {
    const indices = await fetchLiquidIndices(client, now(), signal);
    const options = {
      indices,
      knownNames: new Set<string>(),
      assets: lookups.GWA,
      cadenceSeconds: settings.refreshSeconds,
      signal,
    };
    // Without the prices the indices have no names, and an estimate by id is as good.
    const names = await fetchLiquidNames(client, options).catch(() => new Map<string, string>());
    const ids = indices.map(({ id }) => id);
    liquid = liquidCandidates({}, undefined, ids, names);
  }
  return {
    ...lookups,
    LX: liquid,
    ranking: storedIds ?? (caps.length > 0 ? rankByMarketCap(caps) : undefined),
  };
}
