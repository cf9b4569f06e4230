import type { DerivativeTick, ExchangeTick } from "../../../src/model/records.ts";
import { copyEmptyWarehouse } from "./empty-warehouse.ts";
import { DAY, fill, HOUR, openForWriting } from "./filled-warehouse.ts";
import { decimal, parseTs, tick } from "./records.ts";

const SECOND = 1_000_000;
/** The time of most of its rows. */
export const ODD_MARKET_TS = parseTs("2026-03-01T00:00:00Z");

/** What a service may send that the simulator does not: no index price, a cross rate, old ticks, unknown contracts. */
export function fillOddMarket(path: string): void {
  const T = ODD_MARKET_TS;
  copyEmptyWarehouse(path);
  const future = (id: string, marketId: string, expiration: number) => ({
    ...{ id, derivativeType: "futures", exchangeId: "x1", marketId, expiration },
  });
  const option = (id: string, optionType: string, strike: string) => ({
    ...{ id, derivativeType: "options", exchangeId: "x1", marketId: "btc-usd", expiration: T + 30 * DAY },
    ...{ optionType, optionStrike: decimal(strike) },
  });
  const derivative = (contractId: string, derivativeType: string, more: Partial<DerivativeTick> = {}) => ({
    ...{ contractId, derivativeType, exchangeId: "x1", ts: T, price: decimal("101"), ...more },
  });
  type Quote = readonly [exchangeId: string, marketId: string, bid: string, ask: string];
  const quote = (...[exchangeId, marketId, bid, ask, more]: [...Quote, more?: Partial<ExchangeTick>]) => ({
    ...{ exchangeId, marketId, ts: T, last: decimal("101"), bid: decimal(bid), ask: decimal(ask), ...more },
  });
  const warehouse = openForWriting(path);
  warehouse.transaction((transaction) =>
    fill(transaction, {
      assets: {
        btc: "BTC",
        usdt: "USDT",
        eth: { symbol: "ETH", name: "eth" },
        usd: { symbol: "USD", type: "FIAT" },
        "old-eth": { symbol: "ETH", name: "old-eth", status: "INACTIVE" },
      },
      markets: {
        "btc-usd": ["btc", "usd"],
        "btc-usdt": ["btc", "usdt"],
        "eth-usd": ["eth", "usd"],
        "eth-usdt": ["eth", "usdt"],
      },
      exchanges: { x1: "Zeta", x2: "Alpha", x3: "Mid" },
      contracts: [
        future("near", "btc-usd", T + DAY),
        future("cross", "btc-usdt", T + 73 * DAY),
        future("over", "btc-usd", T),
        { ...option("call", "CALL", "49.5"), marketId: "eth-usd", expiration: null, optionType: null },
        option("c50", "CALL", "50"),
        option("p50", "PUT", "50"),
        option("c200", "CALL", "200"),
      ],
      records: {
        index_ticks: [
          tick(T - 30 * SECOND, "100", { indexId: "btc" }),
          tick(T - 299 * SECOND, "0.5", { indexId: "usdt" }),
          tick(T, "99", { indexType: "MWA", indexId: "eth-usd" }),
          tick(T, "98", { indexId: "eth" }),
          tick(T - 9 * HOUR, "1", { indexId: "old-eth" }),
          tick(T + 5 * HOUR, "97", { indexId: "btc" }),
        ],
        derivative_ticks: [
          derivative("near", "futures"),
          derivative("near", "futures", { ts: T + HOUR }),
          derivative("cross", "futures"),
          derivative("over", "futures", { indexPrice: decimal("100") }),
          derivative("undescribed", "futures", { marketId: "btc-usd" }),
          derivative("perp", "perpetuals", { indexPrice: decimal("0"), markPrice: decimal("1") }),
          derivative("call", "options"),
          derivative("c50", "options", { price: decimal("53"), markPrice: decimal("51") }),
          derivative("p50", "options", { price: decimal("2") }),
          // Worth more than the forward: no volatility explains it.
          derivative("c200", "options", { price: decimal("120") }),
        ],
        exchange_ticks: [
          quote("x1", "btc-usd", "100", "102"),
          quote("x2", "btc-usd", "100", "103"),
          quote("x3", "btc-usd", "104", "101", { lastMoved: T - 2 * HOUR }),
          quote("x3", "btc-usd", "99.5", "101.5", { ts: T - 59 * SECOND }),
          quote("x1", "btc-usdt", "5", "4"),
          quote("x1", "eth-usd", "5", "6", { bid: null, ask: null }),
          quote("x1", "eth-usdt", "0", "0"),
          quote("x2", "unlisted", "1", "2"),
          // As from the websocket, which does not tell when a price last moved: the same as an hour ago.
          quote("x3", "unlisted", "1.8", "1.9", { ts: T - HOUR }),
          quote("x3", "unlisted", "1.8", "1.9"),
          quote("x1", "btc-usd", "90", "120", { ts: T + 60 * SECOND }),
        ],
      },
    }),
  );
  warehouse.close();
}
