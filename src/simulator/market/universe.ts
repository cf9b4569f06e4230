import { DAY_MS } from "./format.ts";
import { hashFraction, hashNumbers } from "./hash.ts";
import {
  inventAssetName,
  inventExchange,
  type KnownAsset,
  type KnownExchange,
  knownAssets,
  knownExchanges,
} from "./names.ts";
import type { PriceParameters } from "./price-model.ts";

/** The id of an entity or a record, which contains its UUID. */
export type FormatId = (uuid: string) => string;

export type UniverseSize = "demo" | "real" | { assets: number; markets: number; exchanges: number };

export interface SimulatedAsset {
  readonly ordinal: number;
  readonly id: string;
  readonly name: string;
  readonly symbol: string;
  readonly status: "ACTIVE" | "INACTIVE";
  readonly type: "FIAT" | "CRYPTO";
  readonly url: string;
  readonly contractAddress?: string;
  readonly priceParameters: PriceParameters;
  readonly freeFloatSupply: number;
  readonly totalSupply: number;
  /** Typical 24-hour volume in units of the asset. */
  readonly dailyVolume: number;
  /** Days since 1970 with prices: [firstDay, endDay). Equal when there are none. */
  readonly firstDay: number;
  readonly endDay: number;
}

export interface SimulatedMarket {
  readonly ordinal: number;
  readonly id: string;
  readonly base: SimulatedAsset;
  readonly quote: SimulatedAsset;
  /** The fraction of the base asset's volume that is traded in this market. */
  readonly fraction: number;
}

export interface SimulatedExchange extends Omit<KnownExchange, "symbols"> {
  readonly ordinal: number;
  readonly id: string;
  readonly markets: readonly SimulatedMarket[];
  readonly symbols: readonly { readonly assetId: string; readonly symbol: string }[];
}

const UNIVERSE_SIZES = {
  demo: { assets: 12, markets: 16, exchanges: 6 },
  real: { assets: 1500, markets: 6000, exchanges: 200 },
};
const NO_END_DAY = 100_000;

export type Universe = Readonly<ReturnType<typeof createUniverse>>;

/** The entities that the lookups serve. Depends only on the seed, the size and the form of ids. */
export function createUniverse(seed: number, size: UniverseSize, formatId: FormatId) {
  const counts = typeof size === "string" ? UNIVERSE_SIZES[size] : size;
  const id = (kind: number, ordinal: number, of = seed) => formatId(createEntityUuid(of, kind, ordinal));
  const assets = Array.from({ length: counts.assets }, (_, at) => createAsset(seed, at, id(1, at)));
  const markets = createPairs(assets, counts.markets).map(([base, quote, rank], at) => {
    return { ordinal: at, id: id(2, at), base, quote, fraction: 0.45 / 2 ** rank };
  });
  const exchanges = Array.from({ length: counts.exchanges }, (_, at) => {
    return createExchange(seed, at, id(3, at), assets, markets);
  });
  const liquidIndexes = (["BLX", "ELX", "XRPLX"] as const).flatMap((name, at) => {
    const asset = assets.find(({ symbol }) => symbol === ["BTC", "ETH", "XRP"][at]);
    // The ids of liquid indexes are the same for every seed.
    return asset ? [{ ordinal: at, id: id(4, at, 0), name, asset }] : [];
  });
  return { assets, markets, exchanges, liquidIndexes };
}

function createAsset(seed: number, ordinal: number, id: string): SimulatedAsset {
  const known = knownAssets[ordinal] ?? inventAsset(seed, ordinal);
  const isFiat = known.kind === "fiat";
  const firstDay =
    known.since <= 2014
      ? parseDay("2014-04-01")
      : parseDay(`${known.since}-02-01`) + (hashNumbers(seed, 31, ordinal) % 250);
  const endDay = known.until ? parseDay(known.until) : NO_END_DAY;
  return {
    ordinal,
    id,
    name: known.name,
    symbol: known.symbol,
    status: known.until ? "INACTIVE" : "ACTIVE",
    type: isFiat ? "FIAT" : "CRYPTO",
    url: `https://assets.example/${known.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`,
    ...(known.kind === "token"
      ? { contractAddress: `0x${createEntityUuid(seed, 5, ordinal).replaceAll("-", "")}` }
      : {}),
    priceParameters: choosePriceParameters(known, hashFraction(seed, 32, ordinal)),
    freeFloatSupply: known.supply,
    totalSupply: known.total,
    dailyVolume: isFiat ? 2e9 / known.usd : known.supply * (known.kind === "stable" ? 0.4 : 0.03),
    firstDay,
    endDay: known.neverPriced ? firstDay : endDay,
  };
}

function choosePriceParameters(known: KnownAsset, chance: number): PriceParameters {
  const { usd } = known;
  if (known.symbol === "USD") return { usd: 1, yearlyVolatility: 0, yearlyGrowth: 0, meanReversionDays: 1 };
  if (known.kind === "fiat")
    return { usd, yearlyVolatility: 0.05 + chance * 0.05, yearlyGrowth: 0, meanReversionDays: 400 };
  if (known.kind === "stable") return { usd, yearlyVolatility: 0.012, yearlyGrowth: 0, meanReversionDays: 1 };
  if (known.symbol === "BTC")
    return { usd, yearlyVolatility: 0.48, yearlyGrowth: 0.42, meanReversionDays: 900 };
  return {
    usd,
    yearlyVolatility: 0.6 + chance * 0.6,
    yearlyGrowth: chance * 0.4 - 0.05,
    meanReversionDays: 700,
  };
}

function inventAsset(seed: number, ordinal: number): KnownAsset {
  const { symbol, name } = inventAssetName(ordinal - knownAssets.length);
  const usd = 10 ** (hashFraction(seed, 33, ordinal) * 6 - 4);
  const marketCap =
    (3e8 / (1 + (ordinal - knownAssets.length) / 40)) * (0.5 + hashFraction(seed, 34, ordinal));
  const supply = Math.round(marketCap / usd);
  return {
    symbol,
    name,
    kind: hashNumbers(seed, 35, ordinal) % 3 === 0 ? "coin" : "token",
    usd,
    supply,
    total: Math.round(supply * (1 + hashFraction(seed, 36, ordinal))),
    since: 2016 + (hashNumbers(seed, 37, ordinal) % 8),
  };
}

/** Returns [base, quote, rank of the quote], grouped by quote: the first markets are all assets against USD. */
function createPairs(assets: readonly SimulatedAsset[], count: number) {
  const leading = ["USD", "USDT", "BTC", "EUR", "ETH", "USDC", "GBP", "JPY", "KRW", "BNB"];
  const priced = assets.filter(({ firstDay, endDay }) => firstDay < endDay);
  const quotes = [
    ...leading.flatMap((symbol) => priced.find((asset) => asset.symbol === symbol) ?? []),
    ...priced.filter(({ symbol }) => !leading.includes(symbol)),
  ];
  const found: [SimulatedAsset, SimulatedAsset, number][] = [];
  const taken = new Set<string>();
  for (const [rank, quote] of quotes.entries()) {
    for (const base of priced) {
      if (found.length === count) return found;
      const isMeaningful =
        base !== quote && base.symbol !== "USD" && (base.type === "CRYPTO" || quote.type === "FIAT");
      if (!isMeaningful || taken.has(`${quote.ordinal}/${base.ordinal}`)) continue;
      taken.add(`${base.ordinal}/${quote.ordinal}`);
      found.push([base, quote, Math.min(rank, 12)]);
    }
  }
  return found;
}

function createExchange(
  seed: number,
  ordinal: number,
  id: string,
  assets: readonly SimulatedAsset[],
  markets: readonly SimulatedMarket[],
): SimulatedExchange {
  const known = knownExchanges[ordinal] ?? inventExchange(ordinal - knownExchanges.length);
  // Big exchanges list more markets; nearly all exchanges list the leading ones.
  const reach = (0.018 * markets.length) / (1 + ordinal * 0.5) + 0.42;
  const listed = markets.filter(({ ordinal: market }) => {
    const leading = market < 24 ? 0.8 / (1 + ordinal * 0.03) : 0;
    const chance = Math.max(leading, reach / (1 + market * 0.25));
    return market === 0 || hashFraction(seed, 41, ordinal, market) < chance;
  });
  return {
    ...{ ...known, ordinal, id, markets: listed },
    symbols: Object.entries(known.symbols).flatMap(([symbol, own]) => {
      const asset = assets.find((candidate) => candidate.symbol === symbol);
      return asset ? [{ assetId: asset.id, symbol: own }] : [];
    }),
  };
}

function parseDay(text: string): number {
  return Date.parse(`${text}T00:00:00Z`) / DAY_MS;
}

/** A random-looking UUID that is always the same for one entity; `kind` is 1 asset, 2 market, 3 exchange, 4 liquid index, 5 contract address. */
function createEntityUuid(seed: number, kind: number, ordinal: number): string {
  const word = (part: number) => hashNumbers(seed, kind, ordinal, part).toString(16).padStart(8, "0");
  const second = word(2);
  const third = word(3);
  return `${word(1)}-${second.slice(0, 4)}-4${second.slice(5)}-a${third.slice(1, 4)}-${third.slice(4)}${word(4)}`;
}
