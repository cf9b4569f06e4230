import type { DerivativeContract, DerivativeTick, ExchangeTick } from "../../../src/model/records.ts";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { writeContracts, writeLookup } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { emptyRecord } from "../empty-record.ts";
import { copyEmptyWarehouse } from "./empty-warehouse.ts";
import { decimal, parseTs, tick } from "./records.ts";

const HOUR = 3_600_000_000;
const SECOND = 1_000_000;
/** The time of most of its rows. */
export const ODD_MARKET_TS = parseTs("2026-03-01T00:00:00Z");
const noted = { quality: null, extra: null };

/** What a service may send that the simulator does not: no index price, a cross rate, old ticks, unknown contracts. */
export function fillOddMarket(path: string): void {
  const T = ODD_MARKET_TS;
  copyEmptyWarehouse(path);
  const warehouse = openWriter(path, { clock: systemClock });
  const asset = (id: string, type = "CRYPTO") => ({
    ...{ id, symbol: id.toUpperCase(), name: id, status: "ACTIVE", type, url: null, contractAddress: null },
    ...noted,
  });
  const market = (baseAssetId: string, quoteAssetId: string) => ({
    ...{ id: `${baseAssetId}-${quoteAssetId}`, baseAssetId, quoteAssetId, ...noted },
  });
  const contract = (
    id: string,
    derivativeType: string,
    marketId: string,
    expiration: number | null,
  ): DerivativeContract => ({
    ...emptyRecord("derivative_contracts"),
    ...{ id, derivativeType, exchangeId: "x1", marketId, exchangeName: id, expiration },
  });
  const option = (id: string, optionType: string, strike: string): DerivativeContract => ({
    ...contract(id, "options", "btc-usd", T + 30 * MICROS_PER_DAY),
    ...{ optionType, optionStrike: decimal(strike) },
  });
  const derivative = (contractId: string, derivativeType: string, more: Partial<DerivativeTick> = {}) => ({
    ...emptyRecord("derivative_ticks"),
    ...{ contractId, derivativeType, exchangeId: "x1", ts: T, price: decimal("101"), ...more },
  });
  const quote = (
    exchangeId: string,
    marketId: string,
    bid: string,
    ask: string,
    more: Partial<ExchangeTick> = {},
  ) => ({
    ...emptyRecord("exchange_ticks"),
    ...{ exchangeId, marketId, ts: T, last: decimal("101"), bid: decimal(bid), ask: decimal(ask), ...more },
  });
  warehouse.transaction((transaction) => {
    const complete = { isComplete: true };
    const namesake = { ...asset("old-eth"), symbol: "ETH", status: "INACTIVE" };
    const assets = [asset("btc"), asset("usdt"), asset("eth"), asset("usd", "FIAT"), namesake];
    writeLookup(transaction, "assets", assets, complete);
    const pairs = [market("btc", "usd"), market("btc", "usdt"), market("eth", "usd"), market("eth", "usdt")];
    writeLookup(transaction, "markets", pairs, complete);
    const exchange = (id: string, name: string) => ({
      ...{ id, name, url: null, status: null, markets: [], symbols: [], ...noted },
    });
    writeLookup(
      transaction,
      "exchanges",
      [exchange("x1", "Zeta"), exchange("x2", "Alpha"), exchange("x3", "Mid")],
      complete,
    );
    const ticks = [
      tick(T - 30 * SECOND, "100", { indexId: "btc" }),
      tick(T - 299 * SECOND, "0.5", { indexId: "usdt" }),
      tick(T, "99", { indexType: "MWA", indexId: "eth-usd" }),
      tick(T, "98", { indexId: "eth" }),
      tick(T - 9 * HOUR, "1", { indexId: "old-eth" }),
      tick(T + 5 * HOUR, "97", { indexId: "btc" }),
    ];
    writeRecords(transaction, "index_ticks", ticks, "rest");
    for (const [type, contracts] of Object.entries({
      futures: [
        contract("near", "futures", "btc-usd", T + MICROS_PER_DAY),
        contract("cross", "futures", "btc-usdt", T + 73 * MICROS_PER_DAY),
        contract("over", "futures", "btc-usd", T),
      ],
      options: [
        { ...contract("call", "options", "eth-usd", null), optionStrike: decimal("49.5") },
        option("c50", "CALL", "50"),
        option("p50", "PUT", "50"),
        option("c200", "CALL", "200"),
      ],
    }))
      writeContracts(transaction, contracts, { isComplete: true, derivativeType: type, exchangeId: "x1" });
    writeRecords(
      transaction,
      "derivative_ticks",
      [
        derivative("near", "futures"),
        derivative("near", "futures", { ts: T + HOUR }),
        derivative("cross", "futures"),
        derivative("over", "futures", { indexPrice: decimal("100") }),
        derivative("undescribed", "futures", { marketId: "btc-usd" }),
        derivative("perp", "perpetuals", { indexPrice: decimal("0"), markPrice: decimal("1") }),
        derivative("call", "options", { indexPrice: null }),
        derivative("c50", "options", { price: decimal("53"), markPrice: decimal("51") }),
        derivative("p50", "options", { price: decimal("2") }),
        // Worth more than the forward: no volatility explains it.
        derivative("c200", "options", { price: decimal("120") }),
      ],
      "rest",
    );
    writeRecords(
      transaction,
      "exchange_ticks",
      [
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
      "rest",
    );
  });
  warehouse.close();
}
