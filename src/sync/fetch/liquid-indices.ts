import { failureCode } from "../../model/failure.ts";
import type { SelectorCandidate } from "../../model/selector.ts";
import type { HistoryStream } from "../../model/streams.ts";
import { formatToSecond, MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { RequestSender } from "../../service/client/client.ts";
import { readStoredIndices } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { fetchPage } from "./fetch-records.ts";

/** Large enough for a record of each liquid index, since there are only a few. */
const PAGE_SIZE = 100;

export interface LiquidIndex {
  readonly id: string;
  /** Its newest tick; undefined if only bars may be read. */
  readonly newest: { readonly ts: Micros; readonly price: number } | undefined;
}

/** Fetches the liquid indices from their latest records, because no lookup lists them. */
export async function fetchLiquidIndices(
  client: RequestSender,
  now: Micros,
  signal: AbortSignal,
): Promise<LiquidIndex[]> {
  const query = { indexType: "LX", timestamp: formatToSecond(now + MICROS_PER_DAY), size: PAGE_SIZE };
  const fetch = async (stream: HistoryStream): Promise<LiquidIndex[]> => {
    const { records } = await fetchPage(client, stream, { query, signal });
    const liquid = records.filter(({ indexType }) => indexType === "LX");
    return [...Map.groupBy(liquid, ({ indexId }) => indexId)].map(([id, [newest]]) => {
      const price = newest && "price" in newest ? newest.price : null;
      return { id, newest: newest && price ? { ts: newest.ts, price: price.real } : undefined };
    });
  };
  try {
    return await fetch("index_ticks");
  } catch (error) {
    // A profile without access to ticks may still have access to bars.
    if (failureCode(error) !== "forbidden") throw error;
    return fetch("ohlcv");
  }
}

/** The liquid indices that the service defines, and the asset whose price each follows. */
export const liquidIndexSymbols: Readonly<Record<string, string>> = { BLX: "BTC", ELX: "ETH", XRPLX: "XRP" };

/** A price of the asset that a liquid index follows. */
export interface NamedPrice {
  readonly name: string;
  readonly price: number;
}

/** A liquid index follows the price of its asset more closely than this. */
const MAX_PRICE_DEVIATION = 0.02;
/** The price of any other asset must be further away than this. */
const MIN_PRICE_DISTANCE = 0.2;

/**
 * Names the indices whose price matches the price of exactly one asset at the same moment. A name that two indices match,
 * and an index that is close to a second asset, stay without.
 */
export function matchLiquidNames(
  indices: readonly {
    readonly id: string;
    readonly candidates: readonly NamedPrice[];
    readonly price: number;
  }[],
): Map<string, string> {
  const matches = indices.flatMap(({ id, price, candidates }) => {
    const distances = candidates
      .filter((candidate) => candidate.price > 0)
      .map((candidate) => ({ name: candidate.name, distance: Math.abs(Math.log(price / candidate.price)) }));
    const near = new Set(
      distances.filter(({ distance }) => distance <= MIN_PRICE_DISTANCE).map(({ name }) => name),
    );
    const [best] = distances.toSorted((a, b) => a.distance - b.distance);
    return best && best.distance <= MAX_PRICE_DEVIATION && near.size === 1 ? [{ id, name: best.name }] : [];
  });
  const byName = Map.groupBy(matches, ({ name }) => name);
  return new Map(
    [...byName.values()].flatMap((own) => (own.length === 1 ? own : [])).map(({ id, name }) => [id, name]),
  );
}

/** A symbol may be shared by several assets: the price shows which one the index follows. */
const MAX_ASSETS_PER_SYMBOL = 4;
const MAX_PRICE_AGE: Micros = 600 * MICROS_PER_SECOND;
/** With a long cadence: the price of the same moment may come a period late. */
const MAX_PERIODS_OLD = 2;

interface NameLiquidOptions {
  readonly indices: readonly LiquidIndex[];
  readonly knownNames: ReadonlySet<string>;
  readonly assets: readonly SelectorCandidate[];
  /** Of the index ticks. */
  readonly cadenceSeconds: number;
  readonly signal: AbortSignal;
}

/** Concludes the names of liquid indices from the prices of their assets at the same moment. */
export async function fetchLiquidNames(
  client: RequestSender,
  { indices, knownNames, assets, cadenceSeconds, signal }: NameLiquidOptions,
): Promise<Map<string, string>> {
  const maxAge = Math.max(MAX_PRICE_AGE, MAX_PERIODS_OLD * cadenceSeconds * MICROS_PER_SECOND);
  const fetchPrice = async (indexId: string, at: Micros) => {
    const query = { indexType: "GWA", indexId, timestamp: formatToSecond(at + MICROS_PER_SECOND), size: 1 };
    const request = { query, signal, maxAttempts: 2, mayBeMissing: true };
    try {
      const [newest] = (await fetchPage(client, "index_ticks", request)).records;
      return newest?.indexId === indexId && at - newest.ts <= maxAge ? newest.price?.real : undefined;
    } catch (error) {
      if (failureCode(error) === "not_found") return undefined;
      throw error;
    }
  };
  // The newest ticks of the indices usually have the same timestamp: each price is then requested once.
  const prices = new Map<string, Promise<number | undefined>>();
  const priceAt = (indexId: string, at: Micros) => {
    const key = `${at} ${indexId}`;
    const price = prices.get(key) ?? fetchPrice(indexId, at);
    prices.set(key, price);
    return price;
  };
  const symbols = Object.entries(liquidIndexSymbols).filter(([name]) => !knownNames.has(name));
  const priced = [];
  for (const { id, newest } of indices) {
    if (!newest || newest.price <= 0) continue;
    const candidates: NamedPrice[] = [];
    for (const [name, symbol] of symbols) {
      const shared = assets.filter(({ labels }) => labels[0] === symbol).slice(0, MAX_ASSETS_PER_SYMBOL);
      for (const asset of shared) {
        const price = await priceAt(asset.id, newest.ts);
        if (price !== undefined) candidates.push({ name, price });
      }
    }
    priced.push({ id, price: newest.price, candidates });
  }
  return matchLiquidNames(priced);
}

/** The liquid indices from the settings, the warehouse and the service, as selector candidates; only what REST knows counts. */
export function liquidCandidates(
  configured: Readonly<Record<string, string>>,
  reader: Connection | undefined,
  fetchedIds: readonly string[],
  matchedNames: ReadonlyMap<string, string> = new Map(),
): SelectorCandidate[] {
  const labels = new Map<string, Set<string>>();
  const add = (id: string, label?: string) => {
    const known = labels.get(id) ?? new Set();
    if (label !== undefined && label !== id) known.add(label);
    labels.set(id, known);
  };
  for (const [name, id] of Object.entries(configured)) add(id, name);
  for (const id of fetchedIds) add(id, matchedNames.get(id));
  for (const { id, name, isServed } of reader ? readStoredIndices(reader, "LX") : [])
    if (isServed || labels.has(id)) add(id, name);
  return [...labels].map(([id, names]) => ({ id, labels: [...names] }));
}
