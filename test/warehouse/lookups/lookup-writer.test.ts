import { describe, expect, it } from "vitest";
import {
  type Asset,
  type DerivativeContract,
  type DerivativeTick,
  type Exchange,
  emptyRecord,
  type Market,
} from "../../../src/model/records.ts";
import {
  writeAssets,
  writeContracts,
  writeExchanges,
  writeMarkets,
} from "../../../src/warehouse/lookups/lookup-writer.ts";
import { countUnknownEvent, countUnknownFields, keepRejects } from "../../../src/warehouse/rows/rejects.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Warehouse } from "../../../src/warehouse/writer.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { openScratch, rows } from "../../support/warehouse/open-warehouse.ts";
import { at, decimal, tick } from "../../support/warehouse/records.ts";

const kept = { quality: null, extra: null };

function asset(id: string, more: Partial<Asset> = {}): Asset {
  const symbol = id.toUpperCase();
  return {
    id,
    symbol,
    name: `${id} coin`,
    status: "ACTIVE",
    type: "CRYPTO",
    url: null,
    contractAddress: null,
    ...kept,
    ...more,
  };
}
const market = (id: string, baseAssetId: string, quoteAssetId: string): Market => ({
  id,
  baseAssetId,
  quoteAssetId,
  ...kept,
});
const exchange = (id: string, more: Partial<Exchange> = {}): Exchange => ({
  id,
  name: id.toUpperCase(),
  url: null,
  status: "ACTIVE",
  markets: [],
  symbols: [],
  ...kept,
  ...more,
});

const hundred = Array.from({ length: 100 }, (_, i) => asset(`a${i}`));
const listAssets = (warehouse: Warehouse, list: readonly Asset[]) =>
  warehouse.transaction((transaction) => writeAssets(transaction, list, { complete: true }));
const marked = (warehouse: Warehouse) =>
  rows(warehouse, "SELECT id FROM assets WHERE delisted_at IS NOT NULL").map(({ id }) => id);

describe("lookups", () => {
  it("keep a history of what changed, and say nothing when nothing did", () => {
    const warehouse = openScratch();
    expect(listAssets(warehouse, hundred)).toEqual({ added: 100, changed: 0, delisted: 0, incident: null });
    expect(listAssets(warehouse, hundred)).toMatchObject({ added: 0, changed: 0 });
    const list = hundred.map((a) => (a.id === "a5" ? { ...a, status: "INACTIVE", name: "five" } : a));
    expect(listAssets(warehouse, list)).toMatchObject({ changed: 1 });
    expect(
      rows(warehouse, "SELECT entity, id, field, old, new, seen_at FROM status_changes ORDER BY field"),
    ).toEqual(
      [
        { field: "name", old: "a5 coin", new: "five" },
        { field: "status", old: "ACTIVE", new: "INACTIVE" },
      ].map((change) => ({ entity: "asset", id: "a5", ...change, seen_at: "2026-03-01T12:00:00.000000Z" })),
    );
  });

  it("C17: mark a row that three complete lists in a row lack, and unmark it when it returns", async () => {
    const clock = new TurnedClock();
    const warehouse = openScratch({ clock });
    listAssets(warehouse, hundred);
    listAssets(warehouse, hundred.slice(1));
    listAssets(warehouse, hundred.slice(1));
    listAssets(warehouse, hundred);
    listAssets(warehouse, hundred.slice(1));
    listAssets(warehouse, hundred.slice(1));
    expect(marked(warehouse)).toEqual([]);
    await clock.advance(3_600_000);
    expect(listAssets(warehouse, hundred.slice(1)).delisted).toBe(1);
    expect(
      rows(warehouse, "SELECT id, symbol, delisted_at FROM assets WHERE delisted_at IS NOT NULL"),
    ).toEqual([{ id: "a0", symbol: "A0", delisted_at: "2026-03-01T13:00:00.000000Z" }]);
    listAssets(warehouse, hundred);
    expect(marked(warehouse)).toEqual([]);
    expect(rows(warehouse, "SELECT field, old, new FROM status_changes")).toEqual([
      { field: "delisted_at", old: null, new: "2026-03-01T13:00:00.000000Z" },
      { field: "delisted_at", old: "2026-03-01T13:00:00.000000Z", new: null },
    ]);
  });

  it("C17: take a list that shrinks by more than a tenth for an incident, and believe it a tenth at a time after two days of it", () => {
    const warehouse = openScratch();
    listAssets(warehouse, hundred);
    const list = () => listAssets(warehouse, hundred.slice(0, 80));
    for (let run = 1; run < 48; run++) expect(list().incident).toEqual({ missing: 20, listed: 100 });
    expect(marked(warehouse)).toEqual([]);
    expect(list()).toMatchObject({ delisted: 10, incident: { missing: 20, listed: 100 } });
    expect(list()).toMatchObject({ delisted: 9, incident: { missing: 10, listed: 90 } });
    expect(list()).toMatchObject({ delisted: 1, incident: null });
    expect(rows(warehouse, "SELECT count(*) AS n FROM assets")).toEqual([{ n: 100 }]);
  });

  it("name series and listings, before and after these are met", () => {
    const warehouse = openScratch();
    const write = (indexType: string, indexId: string) =>
      warehouse.transaction((t) =>
        writeRecords(t, "index_ticks", [tick(1, "1", { indexType, indexId })], "rest"),
      );
    write("GWA", "btc");
    write("MWA", "btc-usd");
    warehouse.transaction((transaction) => {
      writeAssets(transaction, [asset("btc"), asset("usd")], { complete: true });
      writeMarkets(transaction, [market("btc-usd", "btc", "usd"), market("usd-btc", "usd", "btc")], {
        complete: true,
      });
    });
    write("MWA", "usd-btc");
    expect(rows(warehouse, "SELECT index_type, name FROM index_ticks ORDER BY index_id")).toEqual([
      { index_type: "GWA", name: "BTC" },
      { index_type: "MWA", name: "BTC/USD" },
      { index_type: "MWA", name: "USD/BTC" },
    ]);
    warehouse.transaction((t) => writeAssets(t, [asset("btc", { symbol: "XBT" })], { complete: false }));
    expect(rows(warehouse, "SELECT name FROM index_ticks ORDER BY index_id").map(({ name }) => name)).toEqual(
      ["XBT", "XBT/USD", "USD/XBT"],
    );
    expect(
      rows(warehouse, "SELECT pair, base_symbol, quote_symbol FROM markets WHERE id = 'btc-usd'"),
    ).toEqual([{ pair: "XBT/USD", base_symbol: "XBT", quote_symbol: "USD" }]);
  });

  it("keep the markets and symbols of an exchange", () => {
    const warehouse = openScratch();
    const markets = [{ marketId: "m/1", status: "ACTIVE", qualified: true, extra: null }];
    const symbols = [{ assetId: "btc", symbol: "XBT", extra: null }];
    const put = (list: Exchange[]) =>
      warehouse.transaction((t) => writeExchanges(t, list, { complete: true }));
    put([exchange("kraken", { markets, symbols })]);
    put([
      exchange("kraken", {
        markets: [{ marketId: "m/1", status: "HALTED", qualified: false, extra: null }],
        symbols,
      }),
    ]);
    expect(rows(warehouse, "SELECT exchange_id, market_id, status, qualified FROM exchange_markets")).toEqual(
      [{ exchange_id: "kraken", market_id: "m/1", status: "HALTED", qualified: 0 }],
    );
    expect(rows(warehouse, "SELECT exchange_id, asset_id, symbol FROM exchange_symbols")).toEqual([
      { exchange_id: "kraken", asset_id: "btc", symbol: "XBT" },
    ]);
    expect(rows(warehouse, "SELECT entity, id, field, old, new FROM status_changes ORDER BY field")).toEqual([
      { entity: "exchange_market", id: "kraken/m/1", field: "qualified", old: "1", new: "0" },
      { entity: "exchange_market", id: "kraken/m/1", field: "status", old: "ACTIVE", new: "HALTED" },
    ]);
  });

  it("describe a contract that a tick has introduced", () => {
    const warehouse = openScratch();
    const derivative: DerivativeTick = {
      ...emptyRecord("derivative_ticks"),
      contractId: "c1",
      derivativeType: "options",
      ts: 1,
      price: decimal("1"),
      fundingRate: decimal("0.000000000123"),
    };
    const contract: DerivativeContract = {
      id: "c1",
      derivativeType: "options",
      exchangeId: "deribit",
      marketId: "btc-usd",
      exchangeName: "BTC-1JAN27-1-C",
      settlementCurrency: "BTC",
      contractValue: decimal("1"),
      valueCurrency: "BTC",
      optionType: "CALL",
      optionStrike: decimal("1234567890123456789"),
      listing: at("2026-01-01T00:00:00Z"),
      expiration: at("2027-01-01T00:00:00Z"),
      ...kept,
    };
    const scope = { complete: true, derivativeType: "options", exchangeId: "deribit" };
    warehouse.transaction((t) => writeRecords(t, "derivative_ticks", [derivative], "rest"));
    expect(rows(warehouse, "SELECT * FROM derivative_contracts")).toEqual([]);
    warehouse.transaction((t) => writeContracts(t, [contract], scope));
    const later = { ...contract, expiration: at("2027-02-01T00:00:00Z") };
    warehouse.transaction((t) => writeContracts(t, [later], scope));
    expect(
      rows(
        warehouse,
        "SELECT contract_id, exchange_id, exchange_name, funding_rate_exact FROM latest_derivative_ticks",
      ),
    ).toEqual([
      {
        contract_id: "c1",
        exchange_id: "deribit",
        exchange_name: "BTC-1JAN27-1-C",
        funding_rate_exact: "0.000000000123",
      },
    ]);
    expect(rows(warehouse, "SELECT option_strike_exact, expiration FROM derivative_contracts")).toEqual([
      { option_strike_exact: "1234567890123456789", expiration: "2027-02-01T00:00:00.000000Z" },
    ]);
    expect(rows(warehouse, "SELECT field, old FROM status_changes")).toEqual([
      { field: "expiration", old: "2027-01-01T00:00:00.000000Z" },
    ]);
  });
});

describe("what cannot be read or is not known", () => {
  it("is kept verbatim, once, and counted", () => {
    const warehouse = openScratch();
    const reject = { reason: "no timestamp", raw: '{"id":1,"price":"oops"}' };
    const keep = () =>
      warehouse.transaction((t) => keepRejects(t, "index_ticks", [reject], "GET /v3/index-ticker"));
    expect([keep(), keep()]).toEqual([1, 0]);
    warehouse.transaction((transaction) => {
      countUnknownFields(transaction, "ohlcv", [{ name: "mood", count: 3, sample: '"good"' }]);
      countUnknownFields(transaction, "ohlcv", [{ name: "mood", count: 2, sample: '"bad"' }]);
      countUnknownEvent(transaction, { name: "TRADE", count: 1, sample: "x".repeat(9999) });
    });
    expect(rows(warehouse, "SELECT stream, reason, raw, request FROM rejects")).toEqual([
      { stream: "index_ticks", ...reject, request: "GET /v3/index-ticker" },
    ]);
    expect(rows(warehouse, 'SELECT "where", name, count, sample FROM unknown_fields')).toEqual([
      { where: "ohlcv", name: "mood", count: 5, sample: '"good"' },
    ]);
    expect(rows(warehouse, "SELECT name, count, length(sample) AS n FROM unknown_events")).toEqual([
      { name: "TRADE", count: 1, n: 500 },
    ]);
  });
});
