import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { fillEverything } from "../support/export/sample-data.ts";
import { usePostgres } from "../support/postgres.ts";
import { bothStores, shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();

const relations = [
  "assets",
  "markets",
  "exchanges",
  "exchange_markets",
  "exchange_symbols",
  "derivative_contracts",
  "ohlcv",
  "index_ticks",
  "exchange_ticks",
  "market_caps",
  "derivative_ticks",
  "coverage",
  "revisions",
  "status_changes",
  "rejects",
  "unknown_fields",
  "unknown_events",
  "gaps",
  "latest_index_ticks",
  "latest_exchange_ticks",
  "latest_market_caps",
  "latest_derivative_ticks",
];

describe("forwarding", () => {
  it("copies every row, range and digit of all streams, and the second time nothing", async () => {
    const database = await server.createDatabase();
    const warehouse = openTestWarehouse({ clock: systemClock });
    warehouse.transaction(fillEverything);
    const first = await shareInto(server, database, warehouse);
    expect(first.rows).toBeGreaterThan(600);
    for (const relation of relations) {
      const { sqlite, postgres, sqliteColumns, postgresColumns } = await bothStores(
        server,
        database,
        warehouse,
        relation,
      );
      expect.soft(postgresColumns, relation).toEqual(sqliteColumns);
      expect.soft(postgres, relation).toEqual(sqlite);
    }
    const second = await shareInto(server, database, warehouse);
    expect(second).toMatchObject({ rows: 0, ranges: 0, relations: 0, commits: 0 });
  });
});
