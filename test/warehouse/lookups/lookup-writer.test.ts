import { describe, expect, it } from "vitest";
import type { Asset, DerivativeContract, DerivativeTick, Exchange } from "../../../src/model/records.ts";
import { countUnknownEvent, countUnknownFields, storeRejects } from "../../../src/warehouse/rows/rejects.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { emptyRecord } from "../../support/empty-record.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { fill } from "../../support/warehouse/filled-warehouse.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { decimal, parseTs, tick } from "../../support/warehouse/records.ts";
import { writeContracts, writeLookup } from "../../support/warehouse/write-lists.ts";
import { storeTicks, writeRecords } from "../../support/warehouse/write-records.ts";

const asset = (id: string, more: Partial<Asset> = {}): Asset => ({
  ...{ ...emptyRecord("assets"), id, symbol: id.toUpperCase(), name: `${id} coin`, status: "ACTIVE" },
  ...{ type: "CRYPTO", ...more },
});

const hundredAssets = Array.from({ length: 100 }, (_, i) => asset(`a${i}`));
const writeAssetList = (warehouse: WarehouseWriter, list: readonly Asset[]) =>
  warehouse.transaction((transaction) => writeLookup(transaction, "assets", list, { isComplete: true }));
const delistedIds = (warehouse: WarehouseWriter) =>
  queryRows(warehouse, "SELECT id FROM assets WHERE delisted_at IS NOT NULL").map(({ id }) => id);

describe("lookups", () => {
  it("record each change in status_changes, and nothing for an unchanged list", () => {
    const warehouse = openTestWarehouse();
    const added = { added: 100, changed: 0, delisted: 0, incident: null };
    expect(writeAssetList(warehouse, hundredAssets)).toEqual(added);
    expect(writeAssetList(warehouse, hundredAssets)).toMatchObject({ added: 0, changed: 0 });
    const list = hundredAssets.map((a) => (a.id === "a5" ? { ...a, status: "INACTIVE", name: "five" } : a));
    expect(writeAssetList(warehouse, list)).toMatchObject({ changed: 1 });
    const sql = "SELECT entity, id, seen_at, field, old, new FROM status_changes ORDER BY field";
    expect(queryRows(warehouse, sql).map(Object.values)).toEqual([
      ["asset", "a5", "2026-03-01T12:00:00.000000Z", "name", "a5 coin", "five"],
      ["asset", "a5", "2026-03-01T12:00:00.000000Z", "status", "ACTIVE", "INACTIVE"],
    ]);
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
    const markets = { "btc-usd": ["btc", "usd"], "usd-btc": ["usd", "btc"] } as const;
    warehouse.transaction((t) => fill(t, { assets: { btc: "BTC", usd: "USD" }, markets }));
    write("MWA", "usd-btc");
    expect(queryRows(warehouse, "SELECT index_type, name FROM index_ticks ORDER BY index_id")).toEqual([
      { index_type: "GWA", name: "BTC" },
      { index_type: "MWA", name: "BTC/USD" },
      { index_type: "MWA", name: "USD/BTC" },
    ]);
    const renamed = [asset("btc", { symbol: "XBT" })];
    warehouse.transaction((t) => writeLookup(t, "assets", renamed, { isComplete: false }));
    const names = queryRows(warehouse, "SELECT name FROM index_ticks ORDER BY index_id");
    expect(names.map(({ name }) => name)).toEqual(["XBT", "XBT/USD", "USD/XBT"]);
    const pairSql = "SELECT pair, base_symbol, quote_symbol FROM markets WHERE id = 'btc-usd'";
    expect(queryRows(warehouse, pairSql).map(Object.values)).toEqual([["XBT/USD", "XBT", "USD"]]);
  });

  it("store the markets and symbols of an exchange", () => {
    const warehouse = openTestWarehouse();
    const markets = [{ marketId: "m/1", status: "ACTIVE", qualified: true, extra: null }];
    const symbols = [{ assetId: "btc", symbol: "XBT", extra: null }];
    const put = (kraken: Partial<Exchange>) =>
      warehouse.transaction((t) => fill(t, { exchanges: { kraken } }));
    put({ markets, symbols });
    put({ markets: [{ marketId: "m/1", status: "HALTED", qualified: false, extra: null }], symbols });
    const read = (sql: string) => queryRows(warehouse, sql).map(Object.values);
    expect(read("SELECT exchange_id, market_id, status, qualified FROM exchange_markets")).toEqual([
      ["kraken", "m/1", "HALTED", 0],
    ]);
    expect(read("SELECT exchange_id, asset_id, symbol FROM exchange_symbols")).toEqual([
      ["kraken", "btc", "XBT"],
    ]);
    expect(read("SELECT entity, id, field, old, new FROM status_changes ORDER BY field")).toEqual([
      ["exchange_market", "kraken/m/1", "qualified", "1", "0"],
      ["exchange_market", "kraken/m/1", "status", "ACTIVE", "HALTED"],
    ]);
  });

  it("complete the stub of a contract that was inserted for a tick", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const derivative: DerivativeTick = {
      ...{ ...emptyRecord("derivative_ticks"), contractId: "c1", derivativeType: "options", ts: 1 },
      ...{ price: decimal("1"), fundingRate: decimal("0.000000000123") },
    };
    const contract: DerivativeContract = {
      ...{
        ...emptyRecord("derivative_contracts"),
        id: "c1",
        derivativeType: "options",
        exchangeId: "deribit",
      },
      ...{ marketId: "btc-usd", exchangeName: "BTC-1JAN27-1-C", optionType: "CALL" },
      ...{ optionStrike: decimal("1234567890123456789"), expiration: parseTs("2027-01-01T00:00:00Z") },
    };
    const scope = { isComplete: true, derivativeType: "options", exchangeId: "deribit" };
    warehouse.transaction((t) => writeRecords(t, "derivative_ticks", [derivative]));
    expect(queryRows(warehouse, "SELECT * FROM derivative_contracts")).toEqual([]);
    warehouse.transaction((t) => writeContracts(t, [contract], scope));
    const later = { ...contract, expiration: parseTs("2027-02-01T00:00:00Z") };
    warehouse.transaction((t) => writeContracts(t, [later], scope));
    const names = () => queryRows(warehouse, "SELECT exchange, pair FROM derivative_ticks");
    expect(names()).toEqual([{ exchange: "deribit", pair: "btc-usd" }]);
    const lookups = { exchanges: { deribit: "Deribit" }, assets: { btc: "BTC", usd: "USD" } };
    warehouse.transaction((t) => fill(t, { ...lookups, markets: { "btc-usd": ["btc", "usd"] } }));
    expect(names()).toEqual([{ exchange: "Deribit", pair: "BTC/USD" }]);
    const latest =
      "SELECT contract_id, exchange_id, exchange_name, funding_rate_exact FROM latest_derivative_ticks";
    expect(queryRows(warehouse, latest).map(Object.values)).toEqual([
      ["c1", "deribit", "BTC-1JAN27-1-C", "0.000000000123"],
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
