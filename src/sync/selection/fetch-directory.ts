import { decodePage } from "../../ingest/decode/page.ts";
import type { StreamRecords } from "../../model/records.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { Micros } from "../../model/time.ts";
import type { ServiceClient } from "../../service/client/client.ts";
import { followList } from "../../service/pagination/list-walk.ts";
import { storedRanking } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import { learnLiquidIndices, liquidCandidates } from "../fetch/liquid-indices.ts";
import { ranked } from "../fetch/market-caps.ts";
import {
  assetCandidates,
  type Directory,
  marketCandidates,
  namedCandidates,
  storedDirectory,
} from "./directory.ts";
import { needsLiquidIndices, needsRanking } from "./targets.ts";

type ListedStream = "assets" | "markets" | "exchanges" | "market_caps";
const endpoints: Record<ListedStream, string> = {
  assets: "/asset",
  markets: "/market",
  exchanges: "/exchange",
  market_caps: "/market-cap",
};

/**
 * What selectors may pick from, for a look ahead that writes nothing: from the warehouse as far as it knows, from the
 * service (where one is given) for the rest.
 */
export async function askDirectory(
  settings: SyncSettings,
  reader: Connection | undefined,
  client: ServiceClient | undefined,
  now: () => Micros,
  signal: AbortSignal,
): Promise<Directory> {
  const stored = reader ? storedDirectory(reader) : { GWA: [], MWA: [], exchanges: [] };
  const ask = async <S extends ListedStream>(stream: S) =>
    client ? listAll(client, stream, signal) : ([] as StreamRecords[S][]);
  const isKnown = stored.GWA.length > 0;
  const assets = isKnown ? [] : await ask("assets");
  const symbols = new Map(assets.map(({ id, symbol }) => [id, symbol]));
  const pairOf = (base: string | null, quote: string | null) =>
    `${symbols.get(base ?? "") ?? ""}/${symbols.get(quote ?? "") ?? ""}`;
  const asked = isKnown
    ? stored
    : {
        GWA: assetCandidates(assets),
        MWA: marketCandidates(
          (await ask("markets")).map(({ id, baseAssetId, quoteAssetId }) => ({
            id,
            baseAssetId,
            pair: pairOf(baseAssetId, quoteAssetId),
          })),
        ),
        exchanges: namedCandidates(await ask("exchanges")),
      };
  const known = reader && storedRanking(reader);
  const caps = known === undefined && needsRanking(settings) ? await ask("market_caps") : [];
  let liquid = liquidCandidates(settings.lxIndexIds, reader, []);
  if (liquid.length === 0 && needsLiquidIndices(settings) && client) {
    liquid = liquidCandidates({}, undefined, await learnLiquidIndices(client, now(), signal));
  }
  return { ...asked, LX: liquid, ranking: known ?? (caps.length > 0 ? ranked(caps) : undefined) };
}

async function listAll<S extends ListedStream>(
  client: ServiceClient,
  stream: S,
  signal: AbortSignal,
): Promise<StreamRecords[S][]> {
  const all: StreamRecords[S][] = [];
  const list = { endpoint: endpoints[stream], signal };
  const pages = followList(client, list, async (body) => {
    const { records, rawCount, nextId } = decodePage(stream, decodeBody(body));
    return { records, rows: rawCount, nextId };
  });
  for await (const { page } of pages) all.push(...page.records);
  return all;
}
