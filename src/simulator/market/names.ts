/** A well-known asset: its name, price and supply. */
export interface KnownAsset {
  readonly symbol: string;
  readonly name: string;
  readonly kind: "coin" | "token" | "stable" | "fiat";
  readonly usd: number;
  /** Circulating supply, in units. */
  readonly supply: number;
  /** Total supply, in units. */
  readonly total: number;
  /** Year of the first end-of-day price. */
  readonly since: number;
  /** The day on which prices ended, for an inactive asset. */
  readonly until?: string;
  /** The asset is listed, but no price was ever published. */
  readonly neverPriced?: true;
}

const known =
  (kind: KnownAsset["kind"]) =>
  (symbol: string, name: string, usd: number, supply: number, since: number, total = supply): KnownAsset => ({
    symbol,
    name,
    kind,
    usd,
    supply,
    total,
    since,
  });
const [coin, token, stable] = [known("coin"), known("token"), known("stable")];
const fiat = (symbol: string, name: string, usd: number) => known("fiat")(symbol, name, usd, 0, 2014);

/**
 * The order matters: a small universe takes the first assets, so the first dozen contains each special case (a shared
 * symbol, an inactive asset, an asset without data).
 */
export const knownAssets: readonly KnownAsset[] = [
  coin("BTC", "Bitcoin", 88_000, 19_970_000, 2014, 21_000_000),
  fiat("USD", "US Dollar", 1),
  coin("ETH", "Ethereum", 3050, 120_700_000, 2015),
  stable("USDT", "Tether", 1, 186_000_000_000, 2015),
  coin("XRP", "XRP", 1.95, 60_600_000_000, 2014, 99_985_000_000),
  fiat("EUR", "Euro", 1.17),
  coin("SOL", "Solana", 128, 562_000_000, 2020, 617_000_000),
  coin("DOGE", "Dogecoin", 0.127, 168_000_000_000, 2014),
  coin("LTC", "Litecoin", 78, 76_700_000, 2014, 84_000_000),
  coin("LUNA", "Terra", 0.11, 710_000_000, 2022, 1_080_000_000),
  { ...coin("LUNA", "Terra Classic", 0.00004, 5_480_000_000_000, 2019), until: "2025-11-30" },
  { ...token("LIBRA", "Libra", 1, 1_000_000, 2019), neverPriced: true },
  coin("ADA", "Cardano", 0.36, 35_900_000_000, 2017, 45_000_000_000),
  stable("USDC", "USD Coin", 1, 76_000_000_000, 2018),
  coin("BNB", "BNB", 860, 137_700_000, 2017),
  fiat("GBP", "Pound Sterling", 1.35),
  fiat("JPY", "Japanese Yen", 0.0064),
  coin("TRX", "TRON", 0.284, 94_700_000_000, 2017),
  coin("AVAX", "Avalanche", 12.6, 429_000_000, 2020, 461_000_000),
  token("LINK", "Chainlink", 12.4, 708_000_000, 2017, 1_000_000_000),
  coin("DOT", "Polkadot", 1.85, 1_650_000_000, 2020),
  coin("BCH", "Bitcoin Cash", 590, 19_970_000, 2017, 21_000_000),
  coin("XLM", "Stellar", 0.21, 32_300_000_000, 2014, 50_000_000_000),
  token("SHIB", "Shiba Inu", 0.0000071, 589_240_000_000_000, 2020),
  coin("TON", "Toncoin", 1.62, 2_440_000_000, 2021, 5_150_000_000),
  coin("XMR", "Monero", 440, 18_400_000, 2014),
  token("UNI", "Uniswap", 5.8, 630_000_000, 2020, 1_000_000_000),
  coin("ATOM", "Cosmos", 1.98, 490_000_000, 2019),
  coin("ETC", "Ethereum Classic", 11.7, 155_000_000, 2016, 210_700_000),
  token("AAVE", "Aave", 152, 15_200_000, 2020, 16_000_000),
  coin("FIL", "Filecoin", 1.33, 730_000_000, 2020, 1_950_000_000),
  coin("NEAR", "NEAR Protocol", 1.53, 1_280_000_000, 2020),
  coin("APT", "Aptos", 1.68, 750_000_000, 2022),
  coin("ICP", "Internet Computer", 2.9, 545_000_000, 2021),
  coin("ALGO", "Algorand", 0.112, 8_850_000_000, 2019, 10_000_000_000),
  coin("VET", "VeChain", 0.0105, 85_980_000_000, 2018),
  coin("HBAR", "Hedera", 0.108, 42_700_000_000, 2019, 50_000_000_000),
  token("ARB", "Arbitrum", 0.188, 5_700_000_000, 2023, 10_000_000_000),
  token("OP", "Optimism", 0.27, 1_940_000_000, 2022, 4_290_000_000),
  coin("SUI", "Sui", 1.42, 3_740_000_000, 2023, 10_000_000_000),
  coin("ZEC", "Zcash", 510, 16_400_000, 2016, 21_000_000),
  coin("DASH", "Dash", 39, 12_500_000, 2014, 18_900_000),
  coin("XTZ", "Tezos", 0.49, 1_060_000_000, 2018),
  coin("EOS", "EOS", 0.17, 1_600_000_000, 2017),
  coin("NEO", "NEO", 3.6, 70_500_000, 2016, 100_000_000),
  token("MKR", "Maker", 1450, 870_000, 2017, 977_000),
  stable("DAI", "Dai", 1, 4_500_000_000, 2019),
  token("CRV", "Curve DAO Token", 0.37, 1_440_000_000, 2020, 2_300_000_000),
  token("GRT", "The Graph", 0.037, 10_600_000_000, 2020),
  token("SAND", "The Sandbox", 0.113, 2_670_000_000, 2020, 3_000_000_000),
  token("MANA", "Decentraland", 0.118, 1_920_000_000, 2017, 2_190_000_000),
  token("AXS", "Axie Infinity", 0.82, 168_000_000, 2020, 270_000_000),
  token("LDO", "Lido DAO", 0.57, 895_000_000, 2021, 1_000_000_000),
  token("PEPE", "Pepe", 0.000004, 420_690_000_000_000, 2023),
  coin("KAS", "Kaspa", 0.044, 26_900_000_000, 2022, 28_700_000_000),
  coin("EGLD", "MultiversX", 6.3, 29_000_000, 2020, 31_400_000),
  coin("FLOW", "Flow", 0.17, 1_640_000_000, 2021),
  coin("KSM", "Kusama", 7.1, 17_000_000, 2019),
  coin("ZIL", "Zilliqa", 0.005, 19_500_000_000, 2018, 21_000_000_000),
  token("COMP", "Compound", 25.4, 9_600_000, 2020, 10_000_000),
  token("SNX", "Synthetix", 0.43, 343_000_000, 2018),
  token("BAT", "Basic Attention Token", 0.215, 1_490_000_000, 2017, 1_500_000_000),
  token("UNI", "Unicorn Token", 0.0000021, 21_000_000_000, 2019),
  { ...token("FTT", "FTX Token", 0.55, 328_000_000, 2019), until: "2026-01-31" },
  { ...coin("BSV", "Bitcoin SV", 18, 19_900_000, 2018, 21_000_000), until: "2024-06-30" },
  fiat("CHF", "Swiss Franc", 1.26),
  fiat("AUD", "Australian Dollar", 0.67),
  fiat("CAD", "Canadian Dollar", 0.73),
  fiat("KRW", "South Korean Won", 0.00069),
  fiat("SGD", "Singapore Dollar", 0.78),
  fiat("TRY", "Turkish Lira", 0.0233),
  fiat("BRL", "Brazilian Real", 0.183),
];

const firstHalves =
  "Aero Block Chroma Delta Echo Flux Giga Hyper Iris Jade Kilo Lumen Meta Nova Omni Prime Quant Rune Star Terra Ultra Vertex Wave Xeno Yield Zen".split(
    " ",
  );
const secondHalves =
  "Bit Chain Coin Dex Edge Fi Gate Hub Index Jet Key Link Mesh Net Orb Pay Quest Rise Swap Token Unit Vault Web Yard Zone".split(
    " ",
  );

/** Makes a plausible name for an asset beyond the known ones. */
export function inventAssetName(ordinal: number): { symbol: string; name: string } {
  const first = firstHalves[ordinal % firstHalves.length] ?? "";
  const round = Math.floor(ordinal / firstHalves.length);
  const second = secondHalves[round % secondHalves.length] ?? "";
  const generation = Math.floor(round / secondHalves.length);
  const suffix = generation === 0 ? "" : String(generation + 1);
  return {
    symbol: `${first.slice(0, 2)}${second.slice(0, 3)}${suffix}`.toUpperCase(),
    name: `${first}${second}${suffix && ` ${suffix}`}`,
  };
}

export interface KnownExchange {
  readonly name: string;
  readonly url: string;
  readonly status?: "INACTIVE" | "MAINTENANCE";
  /** Lists futures, perpetual swaps and options. */
  readonly derivatives?: true;
  /** Symbols of this exchange that differ from the usual ones. */
  readonly symbols?: Readonly<Record<string, string>>;
}

const spot = (name: string, host: string): KnownExchange => ({ name, url: `https://${host}` });
const spotAndDerivatives = (name: string, host: string): KnownExchange => ({
  ...spot(name, host),
  derivatives: true,
});

/** The order matters: a small universe takes the first exchanges. Exactly seven list derivatives. */
export const knownExchanges: readonly KnownExchange[] = [
  spotAndDerivatives("Binance", "www.binance.com"),
  spot("Coinbase", "www.coinbase.com"),
  { ...spotAndDerivatives("Kraken", "www.kraken.com"), symbols: { BTC: "XBT", DOGE: "XDG" } },
  spotAndDerivatives("Deribit", "www.deribit.com"),
  { ...spot("Bitfinex", "www.bitfinex.com"), status: "MAINTENANCE", symbols: { USDT: "UST" } },
  spotAndDerivatives("OKX", "www.okx.com"),
  { ...spotAndDerivatives("BitMEX", "www.bitmex.com"), symbols: { BTC: "XBT" } },
  spotAndDerivatives("Bybit", "www.bybit.com"),
  spotAndDerivatives("HTX", "www.htx.com"),
  { ...spot("FTX", "ftx.com"), status: "INACTIVE" },
  spot("Bitstamp", "www.bitstamp.net"),
  spot("Gemini", "www.gemini.com"),
  spot("KuCoin", "www.kucoin.com"),
  spot("Gate.io", "www.gate.io"),
  spot("Crypto.com", "crypto.com"),
  spot("Bithumb", "www.bithumb.com"),
  spot("Upbit", "upbit.com"),
  spot("bitFlyer", "bitflyer.com"),
  spot("Bitget", "www.bitget.com"),
  spot("MEXC", "www.mexc.com"),
  spot("Poloniex", "poloniex.com"),
  { ...spot("Bittrex", "bittrex.com"), status: "INACTIVE" },
  spot("itBit", "www.itbit.com"),
  spot("LMAX Digital", "www.lmax.com"),
  spot("Bitvavo", "bitvavo.com"),
  spot("CEX.IO", "cex.io"),
  spot("EXMO", "exmo.com"),
  spot("HitBTC", "hitbtc.com"),
  spot("BitMart", "www.bitmart.com"),
  spot("LBank", "www.lbank.com"),
  spot("Coincheck", "coincheck.com"),
  spot("Zaif", "zaif.jp"),
  spot("Coinone", "coinone.co.kr"),
  spot("Korbit", "www.korbit.co.kr"),
  spot("Luno", "www.luno.com"),
  spot("Mercado Bitcoin", "www.mercadobitcoin.com.br"),
  spot("Bitso", "bitso.com"),
  spot("BtcTurk", "www.btcturk.com"),
  spot("WhiteBIT", "whitebit.com"),
  spot("Indodax", "indodax.com"),
];

const cities =
  "Zurich Tokyo Lisbon Tallinn Seoul Dubai Toronto Vilnius Geneva Osaka Malta Nairobi Lagos Bogota Lima Oslo Riga Prague Taipei Sydney".split(
    " ",
  );
const suffixes = "Exchange Markets Trade Spot DEX Bourse Desk Pool".split(" ");

export function inventExchange(ordinal: number): KnownExchange {
  const city = cities[ordinal % cities.length] ?? "";
  const suffix = suffixes[Math.floor(ordinal / cities.length) % suffixes.length] ?? "";
  const round = Math.floor(ordinal / (cities.length * suffixes.length));
  const name = `${city} ${suffix}${round === 0 ? "" : ` ${round + 1}`}`;
  return spot(name, `${name.toLowerCase().replaceAll(" ", "-")}.example`);
}
