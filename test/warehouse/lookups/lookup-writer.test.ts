import { describe, expect, it } from "vitest";
import type {
  Asset,
  DerivativeContract,
  DerivativeTick,
  Exchange,
  Market,
} from "../../../src/model/records.ts";
import { countUnknownEvent, countUnknownFields, storeRejects } from "../../../src/warehouse/rows/rejects.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { emptyRecord } from "../../support/empty-record.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { decimal, parseTs, tick } from "../../support/warehouse/records.ts";
import { writeContracts, writeLookup } from "../../support/warehouse/write-lists.ts";
import { storeTicks, writeRecords } from "../../support/warehouse/write-records.ts";

const noQualityOrExtra = { quality: null, extra: null };

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
    ...noQualityOrExtra,
    ...more,
  };
}
const market = (id: string, baseAssetId: string, quoteAssetId: string): Market => ({
  id,
  baseAssetId,
  quoteAssetId,
  ...noQualityOrExtra,
});
const exchange = (id: string, more: Partial<Exchange> = {}): Exchange => ({
  id,
  name: id.toUpperCase(),
  url: null,
  status: "ACTIVE",
  markets: [],
  symbols: [],
  ...noQualityOrExtra,
  ...more,
});

const hundredAssets = Array.from({ length: 100 }, (_, i) => asset(`a${i}`));
const writeAssetList = (warehouse: WarehouseWriter, list: readonly Asset[]) =>
  warehouse.transaction((transaction) => writeLookup(transaction, "assets", list, { isComplete: true }));
const delistedIds = (warehouse: WarehouseWriter) =>
  queryRows(warehouse, "SELECT id FROM assets WHERE delisted_at IS NOT NULL").map(({ id }) => id);

describe("lookups", () => {
  it("record each change in status_changes, and nothing for an unchanged list", () => {
    const warehouse = openTestWarehouse();
    expect(writeAssetList(warehouse, hundredAssets)).toEqual({
      added: 100,
      changed: 0,
      delisted: 0,
      incident: null,
    });
    expect(writeAssetList(warehouse, hundredAssets)).toMatchObject({ added: 0, changed: 0 });
    const list = hundredAssets.map((a) => (a.id === "a5" ? { ...a, status: "INACTIVE", name: "five" } : a));
    expect(writeAssetList(warehouse, list)).toMatchObject({ changed: 1 });
    expect(
      queryRows(warehouse, "SELECT entity, id, field, old, new, seen_at FROM status_changes ORDER BY field"),
    ).toEqual(
      [
        { field: "name", old: "a5 coin", new: "five" },
        { field: "status", old: "ACTIVE", new: "INACTIVE" },
      ].map((change) => ({ entity: "asset", id: "a5", ...change, seen_at: "2026-03-01T12:00:00.000000Z" })),
    );
  });

  it("C17: mark a row as delisted after three consecutive complete lists without it over two hours, and unmark it when it returns", async () => {
    const clock = new ManualClock();
    const warehouse = openTestWarehouse({ clock });
    const hourlyWithout = async () => {
      await clock.advance(3_600_000);
      return writeAssetList(warehouse, hundredAssets.slice(1));
    };
    writeAssetList(warehouse, hundredAssets);
    await hourlyWithout();
    await hourlyWithout();
    writeAssetList(warehouse, hundredAssets);
    // Two are too few, however far apart, and an incomplete list adds nothing.
    await hourlyWithout();
    await clock.advance(7_200_000);
    await hourlyWithout();
    warehouse.transaction((t) => writeLookup(t, "assets", hundredAssets.slice(2), { isComplete: false }));
    expect(delistedIds(warehouse)).toEqual([]);
    expect((await hourlyWithout()).delisted).toBe(1);
    expect(
      queryRows(warehouse, "SELECT id, symbol, delisted_at FROM assets WHERE delisted_at IS NOT NULL"),
    ).toEqual([{ id: "a0", symbol: "A0", delisted_at: "2026-03-01T19:00:00.000000Z" }]);
    writeAssetList(warehouse, hundredAssets);
    expect(delistedIds(warehouse)).toEqual([]);
    expect(queryRows(warehouse, "SELECT field, old, new FROM status_changes")).toEqual([
      { field: "delisted_at", old: null, new: "2026-03-01T19:00:00.000000Z" },
      { field: "delisted_at", old: "2026-03-01T19:00:00.000000Z", new: null },
    ]);
  });

  it("C17: delist nothing within two hours, however many lists lack it", async () => {
    const clock = new ManualClock();
    const warehouse = openTestWarehouse({ clock });
    writeAssetList(warehouse, hundredAssets);
    for (let run = 0; run < 119; run++) {
      expect(writeAssetList(warehouse, hundredAssets.slice(10)).delisted).toBe(0);
      await clock.advance(60_000);
    }
    // One list that has them begins the count anew, also an incomplete one.
    warehouse.transaction((t) => writeLookup(t, "assets", hundredAssets.slice(0, 5), { isComplete: false }));
    await clock.advance(60_000);
    expect(writeAssetList(warehouse, hundredAssets.slice(10)).delisted).toBe(5);
  });

  it("C17: treat a list that lacks more than a tenth as an incident, and after two days delist a tenth at a time", async () => {
    const clock = new ManualClock();
    const warehouse = openTestWarehouse({ clock });
    writeAssetList(warehouse, hundredAssets);
    const list = () => writeAssetList(warehouse, hundredAssets.slice(0, 80));
    for (let hour = 0; hour < 48; hour++) {
      expect(list()).toMatchObject({ delisted: 0, incident: { missing: 20, listed: 100 } });
      await clock.advance(3_600_000);
    }
    writeAssetList(warehouse, hundredAssets);
    list();
    await clock.advance(2 * 86_400_000);
    expect(list().delisted).toBe(0);
    expect(list()).toMatchObject({ delisted: 10, incident: { missing: 20, listed: 100 } });
    expect(list()).toMatchObject({ delisted: 9, incident: { missing: 10, listed: 90 } });
    expect(list()).toMatchObject({ delisted: 1, incident: null });
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM assets")).toEqual([{ n: 100 }]);
  });

  it("name series that exist already and series that are added later", () => {
    const warehouse = openTestWarehouse();
    const write = (indexType: string, indexId: string) =>
      storeTicks(warehouse, [tick(1, "1", { indexType, indexId })]);
    write("GWA", "btc");
    write("MWA", "btc-usd");
    warehouse.transaction((transaction) => {
      writeLookup(transaction, "assets", [asset("btc"), asset("usd")], { isComplete: true });
      writeLookup(
        transaction,
        "markets",
        [market("btc-usd", "btc", "usd"), market("usd-btc", "usd", "btc")],
        { isComplete: true },
      );
    });
    write("MWA", "usd-btc");
    expect(queryRows(warehouse, "SELECT index_type, name FROM index_ticks ORDER BY index_id")).toEqual([
      { index_type: "GWA", name: "BTC" },
      { index_type: "MWA", name: "BTC/USD" },
      { index_type: "MWA", name: "USD/BTC" },
    ]);
    warehouse.transaction((t) =>
      writeLookup(t, "assets", [asset("btc", { symbol: "XBT" })], { isComplete: false }),
    );
    expect(
      queryRows(warehouse, "SELECT name FROM index_ticks ORDER BY index_id").map(({ name }) => name),
    ).toEqual(["XBT", "XBT/USD", "USD/XBT"]);
    expect(
      queryRows(warehouse, "SELECT pair, base_symbol, quote_symbol FROM markets WHERE id = 'btc-usd'"),
    ).toEqual([{ pair: "XBT/USD", base_symbol: "XBT", quote_symbol: "USD" }]);
  });

  it("store the markets and symbols of an exchange", () => {
    const warehouse = openTestWarehouse();
    const markets = [{ marketId: "m/1", status: "ACTIVE", qualified: true, extra: null }];
    const symbols = [{ assetId: "btc", symbol: "XBT", extra: null }];
    const put = (list: Exchange[]) =>
      warehouse.transaction((t) => writeLookup(t, "exchanges", list, { isComplete: true }));
    put([exchange("kraken", { markets, symbols })]);
    put([
      exchange("kraken", {
        markets: [{ marketId: "m/1", status: "HALTED", qualified: false, extra: null }],
        symbols,
      }),
    ]);
    expect(
      queryRows(warehouse, "SELECT exchange_id, market_id, status, qualified FROM exchange_markets"),
    ).toEqual([{ exchange_id: "kraken", market_id: "m/1", status: "HALTED", qualified: 0 }]);
    expect(queryRows(warehouse, "SELECT exchange_id, asset_id, symbol FROM exchange_symbols")).toEqual([
      { exchange_id: "kraken", asset_id: "btc", symbol: "XBT" },
    ]);
    expect(
      queryRows(warehouse, "SELECT entity, id, field, old, new FROM status_changes ORDER BY field"),
    ).toEqual([
      { entity: "exchange_market", id: "kraken/m/1", field: "qualified", old: "1", new: "0" },
      { entity: "exchange_market", id: "kraken/m/1", field: "status", old: "ACTIVE", new: "HALTED" },
    ]);
  });

  it("complete the stub of a contract that was inserted for a tick", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
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
      listing: parseTs("2026-01-01T00:00:00Z"),
      expiration: parseTs("2027-01-01T00:00:00Z"),
      ...noQualityOrExtra,
    };
    const scope = { isComplete: true, derivativeType: "options", exchangeId: "deribit" };
    warehouse.transaction((t) => writeRecords(t, "derivative_ticks", [derivative]));
    expect(queryRows(warehouse, "SELECT * FROM derivative_contracts")).toEqual([]);
    warehouse.transaction((t) => writeContracts(t, [contract], scope));
    const later = { ...contract, expiration: parseTs("2027-02-01T00:00:00Z") };
    warehouse.transaction((t) => writeContracts(t, [later], scope));
    const names = () => queryRows(warehouse, "SELECT exchange, pair FROM derivative_ticks");
    expect(names()).toEqual([{ exchange: "deribit", pair: "btc-usd" }]);
    warehouse.transaction((t) => {
      writeLookup(t, "exchanges", [exchange("deribit", { name: "Deribit" })], { isComplete: true });
      writeLookup(t, "assets", [asset("btc"), asset("usd")], { isComplete: true });
      writeLookup(t, "markets", [market("btc-usd", "btc", "usd")], { isComplete: true });
    });
    expect(names()).toEqual([{ exchange: "Deribit", pair: "BTC/USD" }]);
    expect(
      queryRows(
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
    expect(queryRows(warehouse, "SELECT option_strike_exact, expiration FROM derivative_contracts")).toEqual([
      { option_strike_exact: "1234567890123456789", expiration: "2027-02-01T00:00:00.000000Z" },
    ]);
    expect(queryRows(warehouse, "SELECT field, old FROM status_changes")).toEqual([
      { field: "expiration", old: "2027-01-01T00:00:00.000000Z" },
    ]);
  });
});

describe("rejects and unknown fields", () => {
  it("are stored verbatim once, and counted", () => {
    const warehouse = openTestWarehouse();
    const reject = { reason: "no timestamp", raw: '{"id":1,"price":"oops"}' };
    const store = () =>
      warehouse.transaction((t) => storeRejects(t, "index_ticks", [reject], "GET /v3/index-ticker"));
    expect([store(), store()]).toEqual([1, 0]);
    warehouse.transaction((transaction) => {
      countUnknownFields(transaction, "ohlcv", [{ name: "mood", count: 3, sample: '"good"' }]);
      countUnknownFields(transaction, "ohlcv", [{ name: "mood", count: 2, sample: '"bad"' }]);
      countUnknownEvent(transaction, { name: "TRADE", count: 1, sample: "x".repeat(9999) });
    });
    expect(queryRows(warehouse, "SELECT stream, reason, raw, request FROM rejects")).toEqual([
      { stream: "index_ticks", ...reject, request: "GET /v3/index-ticker" },
    ]);
    expect(queryRows(warehouse, 'SELECT "where", name, count, sample FROM unknown_fields')).toEqual([
      { where: "ohlcv", name: "mood", count: 5, sample: '"good"' },
    ]);
    expect(queryRows(warehouse, "SELECT name, count, length(sample) AS n FROM unknown_events")).toEqual([
      { name: "TRADE", count: 1, n: 500 },
    ]);
  });
});
