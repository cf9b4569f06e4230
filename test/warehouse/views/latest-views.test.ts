import { describe, expect, it } from "vitest";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { fill } from "../../support/warehouse/filled-warehouse.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { decimal, tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

/** The views use the time of the query, and a new warehouse has no clock skew. */
const now = Math.floor((systemClock.now() * MICROS_PER_MS) / MICROS_PER_SECOND) * MICROS_PER_SECOND;
const PERIOD = 30 * MICROS_PER_SECOND;
const HOUR = 3600 * MICROS_PER_SECOND;

const option = { derivativeType: "options", exchangeId: "deribit" };

describe("latest_… views", () => {
  it("tell how old each row is, and which series have gone quiet", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    storeTicks(warehouse, [
      tick(now - PERIOD, "1", { indexId: "alive" }),
      tick(now - 11 * PERIOD, "2", { indexId: "just-alive" }),
      tick(now - HOUR, "3", { indexId: "delisted" }),
    ]);
    const rows = queryRows(
      warehouse,
      "SELECT name, age_seconds, is_live FROM latest_index_ticks ORDER BY ts DESC",
    );
    expect(rows.map(({ name, is_live }) => [name, is_live])).toEqual([
      ["alive", 1],
      ["just-alive", 1],
      ["delisted", 0],
    ]);
    expect(Number(rows[2]?.age_seconds)).toBeGreaterThanOrEqual(3600);
    expect(Number(rows[2]?.age_seconds)).toBeLessThan(3700);
  });

  it("judge an offline warehouse by its own newest row", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const lastNight = now - 20 * HOUR;
    const ticks = [
      tick(lastNight, "1", { indexId: "alive" }),
      tick(lastNight - HOUR, "3", { indexId: "delisted" }),
    ];
    storeTicks(warehouse, ticks);
    expect(queryRows(warehouse, "SELECT name FROM latest_index_ticks WHERE is_live")).toEqual([
      { name: "alive" },
    ]);
  });

  it("call a contract dead once it has expired", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const tickOf = (contractId: string) => ({
      ...option,
      contractId,
      ts: now - 2 * PERIOD,
      price: decimal("1"),
    });
    warehouse.transaction((t) =>
      fill(t, {
        contracts: [
          { ...option, id: "expired", expiration: now - 2 * PERIOD },
          { ...option, id: "running", expiration: now + HOUR },
        ],
        records: { derivative_ticks: ["expired", "running", "unlisted"].map(tickOf) },
      }),
    );
    expect(
      queryRows(warehouse, "SELECT contract_id, is_live FROM latest_derivative_ticks ORDER BY contract_id"),
    ).toEqual([
      { contract_id: "expired", is_live: 0 },
      { contract_id: "running", is_live: 1 },
      { contract_id: "unlisted", is_live: 1 },
    ]);
  });
});
