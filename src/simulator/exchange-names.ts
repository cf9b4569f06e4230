export interface KnownExchange {
  readonly name: string;
  readonly url: string;
  readonly status?: "INACTIVE" | "MAINTENANCE";
  /** Lists futures, perpetual swaps and options. */
  readonly derivatives?: true;
  /** What it calls assets that the rest of the world calls otherwise. */
  readonly symbols?: Readonly<Record<string, string>>;
}

const spot = (name: string, host: string): KnownExchange => ({ name, url: `https://${host}` });
const both = (name: string, host: string): KnownExchange => ({ ...spot(name, host), derivatives: true });

/** The order matters: a small universe takes the first ones. Exactly seven list derivatives. */
export const knownExchanges: readonly KnownExchange[] = [
  both("Binance", "www.binance.com"),
  spot("Coinbase", "www.coinbase.com"),
  { ...both("Kraken", "www.kraken.com"), symbols: { BTC: "XBT", DOGE: "XDG" } },
  both("Deribit", "www.deribit.com"),
  { ...spot("Bitfinex", "www.bitfinex.com"), status: "MAINTENANCE", symbols: { USDT: "UST" } },
  both("OKX", "www.okx.com"),
  { ...both("BitMEX", "www.bitmex.com"), symbols: { BTC: "XBT" } },
  both("Bybit", "www.bybit.com"),
  both("HTX", "www.htx.com"),
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
const houses = "Exchange Markets Trade Spot DEX Bourse Desk Pool".split(" ");

export function inventedExchange(ordinal: number): KnownExchange {
  const city = cities[ordinal % cities.length] ?? "";
  const house = houses[Math.floor(ordinal / cities.length) % houses.length] ?? "";
  const round = Math.floor(ordinal / (cities.length * houses.length));
  const name = `${city} ${house}${round === 0 ? "" : ` ${round + 1}`}`;
  return spot(name, `${name.toLowerCase().replaceAll(" ", "-")}.example`);
}
