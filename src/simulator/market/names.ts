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
  readonly neverPriced?: boolean;
}

/**
 * Symbol, name, kind, price, circulating supply, year of the first price, and the total supply if it differs. The order
 * matters: a small universe takes the first assets, so the first dozen contains each special case (a shared symbol, an
 * inactive asset, an asset without data).
 */
const ASSETS = `
BTC Bitcoin coin 88000 19.97e6 2014 21e6 | USD US Dollar fiat 1 | ETH Ethereum coin 3050 120.7e6 2015
USDT Tether stable 1 186e9 2015 | XRP XRP coin 1.95 60.6e9 2014 99.985e9 | EUR Euro fiat 1.17
SOL Solana coin 128 562e6 2020 617e6 | DOGE Dogecoin coin 0.127 168e9 2014 | LTC Litecoin coin 78 76.7e6 2014 84e6
LUNA Terra coin 0.11 710e6 2022 1.08e9 | LUNA Terra Classic coin 0.00004 5.48e12 2019 until 2025-11-30
LIBRA Libra token 1 1e6 2019 unpriced | ADA Cardano coin 0.36 35.9e9 2017 45e9 | USDC USD Coin stable 1 76e9 2018
BNB BNB coin 860 137.7e6 2017 | GBP Pound Sterling fiat 1.35 | JPY Japanese Yen fiat 0.0064
TRX TRON coin 0.284 94.7e9 2017 | AVAX Avalanche coin 12.6 429e6 2020 461e6 | LINK Chainlink token 12.4 708e6 2017 1e9
DOT Polkadot coin 1.85 1.65e9 2020 | BCH Bitcoin Cash coin 590 19.97e6 2017 21e6
XLM Stellar coin 0.21 32.3e9 2014 50e9 | SHIB Shiba Inu token 0.0000071 589.24e12 2020
TON Toncoin coin 1.62 2.44e9 2021 5.15e9 | XMR Monero coin 440 18.4e6 2014 | UNI Uniswap token 5.8 630e6 2020 1e9
ATOM Cosmos coin 1.98 490e6 2019 | ETC Ethereum Classic coin 11.7 155e6 2016 210.7e6
AAVE Aave token 152 15.2e6 2020 16e6 | FIL Filecoin coin 1.33 730e6 2020 1.95e9
NEAR NEAR Protocol coin 1.53 1.28e9 2020 | APT Aptos coin 1.68 750e6 2022 | ICP Internet Computer coin 2.9 545e6 2021
ALGO Algorand coin 0.112 8.85e9 2019 10e9 | VET VeChain coin 0.0105 85.98e9 2018
HBAR Hedera coin 0.108 42.7e9 2019 50e9 | ARB Arbitrum token 0.188 5.7e9 2023 10e9
OP Optimism token 0.27 1.94e9 2022 4.29e9 | SUI Sui coin 1.42 3.74e9 2023 10e9 | ZEC Zcash coin 510 16.4e6 2016 21e6
DASH Dash coin 39 12.5e6 2014 18.9e6 | XTZ Tezos coin 0.49 1.06e9 2018 | EOS EOS coin 0.17 1.6e9 2017
NEO NEO coin 3.6 70.5e6 2016 100e6 | MKR Maker token 1450 870000 2017 977000 | DAI Dai stable 1 4.5e9 2019
CRV Curve DAO Token token 0.37 1.44e9 2020 2.3e9 | GRT The Graph token 0.037 10.6e9 2020
SAND The Sandbox token 0.113 2.67e9 2020 3e9 | MANA Decentraland token 0.118 1.92e9 2017 2.19e9
AXS Axie Infinity token 0.82 168e6 2020 270e6 | LDO Lido DAO token 0.57 895e6 2021 1e9
PEPE Pepe token 0.000004 420.69e12 2023 | KAS Kaspa coin 0.044 26.9e9 2022 28.7e9
EGLD MultiversX coin 6.3 29e6 2020 31.4e6 | FLOW Flow coin 0.17 1.64e9 2021 | KSM Kusama coin 7.1 17e6 2019
ZIL Zilliqa coin 0.005 19.5e9 2018 21e9 | COMP Compound token 25.4 9.6e6 2020 10e6
SNX Synthetix token 0.43 343e6 2018 | BAT Basic Attention Token token 0.215 1.49e9 2017 1.5e9
UNI Unicorn Token token 0.0000021 21e9 2019 | FTT FTX Token token 0.55 328e6 2019 until 2026-01-31
BSV Bitcoin SV coin 18 19.9e6 2018 21e6 until 2024-06-30 | CHF Swiss Franc fiat 1.26 | AUD Australian Dollar fiat 0.67
CAD Canadian Dollar fiat 0.73 | KRW South Korean Won fiat 0.00069 | SGD Singapore Dollar fiat 0.78
TRY Turkish Lira fiat 0.0233 | BRL Brazilian Real fiat 0.183
`;
const ASSET =
  /^(\S+) (.+) (coin|token|stable|fiat) ([\d.]+)(?: (\S+) (\d{4})(?: (\d\S+))?)?(?: until (\S+)| (unpriced))?$/;

export const knownAssets: readonly KnownAsset[] = splitTable(ASSETS).map((text) => {
  const [, symbol = "", name = "", kind, usd, supply = "0", since = "2014", total = supply, until, unpriced] =
    ASSET.exec(text) ?? [];
  return {
    symbol,
    name,
    kind: kind as KnownAsset["kind"],
    usd: Number(usd),
    supply: Number(supply),
    total: Number(total),
    since: Number(since),
    ...(until ? { until } : {}),
    ...(unpriced ? { neverPriced: true } : {}),
  };
});

function splitTable(table: string): string[] {
  return table.trim().split(/ \| |\n/);
}

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
  readonly status: "ACTIVE" | "INACTIVE" | "MAINTENANCE";
  /** Lists futures, perpetual swaps and options. */
  readonly derivatives: boolean;
  /** Symbols of this exchange that differ from the usual ones. */
  readonly symbols: Readonly<Record<string, string>>;
}

/** Name, host, and peculiarities. The order matters: a small universe takes the first exchanges. Exactly seven list derivatives. */
const EXCHANGES = `
Binance www.binance.com derivatives | Coinbase www.coinbase.com | Kraken www.kraken.com derivatives
Deribit www.deribit.com derivatives | Bitfinex www.bitfinex.com MAINTENANCE | OKX www.okx.com derivatives
BitMEX www.bitmex.com derivatives | Bybit www.bybit.com derivatives | HTX www.htx.com derivatives
FTX ftx.com INACTIVE | Bitstamp www.bitstamp.net | Gemini www.gemini.com | KuCoin www.kucoin.com | Gate.io www.gate.io
Crypto.com crypto.com | Bithumb www.bithumb.com | Upbit upbit.com | bitFlyer bitflyer.com | Bitget www.bitget.com
MEXC www.mexc.com | Poloniex poloniex.com | Bittrex bittrex.com INACTIVE | itBit www.itbit.com
LMAX Digital www.lmax.com | Bitvavo bitvavo.com | CEX.IO cex.io | EXMO exmo.com | HitBTC hitbtc.com
BitMart www.bitmart.com | LBank www.lbank.com | Coincheck coincheck.com | Zaif zaif.jp | Coinone coinone.co.kr
Korbit www.korbit.co.kr | Luno www.luno.com | Mercado Bitcoin www.mercadobitcoin.com.br | Bitso bitso.com
BtcTurk www.btcturk.com | WhiteBIT whitebit.com | Indodax indodax.com
`;
const OTHER_SYMBOLS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Kraken: { BTC: "XBT", DOGE: "XDG" },
  Bitfinex: { USDT: "UST" },
  BitMEX: { BTC: "XBT" },
};

export const knownExchanges: readonly KnownExchange[] = splitTable(EXCHANGES).map((text) => {
  const [, name = "", host, derivatives, status = "ACTIVE"] =
    /^(.+) (\S+\.\S+)(?: (derivatives)| ([A-Z]+))?$/.exec(text) ?? [];
  return {
    name,
    url: `https://${host}`,
    status: status as KnownExchange["status"],
    derivatives: derivatives !== undefined,
    symbols: OTHER_SYMBOLS[name] ?? {},
  };
});

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
  const url = `https://${name.toLowerCase().replaceAll(" ", "-")}.example`;
  return { name, url, status: "ACTIVE", derivatives: false, symbols: {} };
}
