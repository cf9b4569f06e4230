import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fillEverything, openAt } from "./content.ts";
import { bothSides, exportIn } from "./reading.ts";

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
  "latest_index_ticks",
  "latest_exchange_ticks",
  "latest_market_caps",
  "latest_derivative_ticks",
  "coverage",
  "revisions",
  "status_changes",
  "rejects",
  "unknown_fields",
  "unknown_events",
];

describe("an export", () => {
  it("says in DuckDB what the warehouse says, relation by relation and row by row", async () => {
    const folder = temporaryFolder();
    const warehouse = openAt(folder);
    warehouse.transaction(fillEverything);
    await exportIn(folder);
    for (const relation of relations) {
      const sides = await bothSides(folder, relation);
      expect(sides.catalogue, relation).toEqual(sides.warehouse);
      expect(sides.catalogue.length, relation).toBeGreaterThan(0);
    }
    warehouse.close();
  });
});
