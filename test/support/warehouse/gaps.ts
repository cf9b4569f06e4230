import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { declareTargets, type Target } from "../../../src/warehouse/coverage/targets.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { queryRows } from "./open-warehouse.ts";

/** The settle delay of a target. */
export const DELAY = 60 * MICROS_PER_SECOND;
export const present = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;

/** In units of 20 seconds: the view reads SQLite's clock, which moves on during a test. */
const toUnits = (ts: number) => Math.floor((ts - present) / (20 * MICROS_PER_SECOND));

/** Selects the first series of index ticks from this timestamp on. */
export function declareTarget(warehouse: WarehouseWriter, from: number, more: Partial<Target> = {}): void {
  warehouse.transaction((transaction) => {
    const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
    const key = { stream: "index_ticks", series } as const;
    const rules = { settleDelay: DELAY, step: 1, serviceWindow: 200 * MICROS_PER_DAY };
    declareTargets(transaction, "index_ticks", [{ key, from, ...rules, ...more }], present);
  });
}

/** State, reason and bounds in units of each row of the view `gaps`. */
export const gapsOf = (warehouse: WarehouseWriter) =>
  queryRows(warehouse, "SELECT state, reason, from_ts, to_ts FROM gaps ORDER BY from_ts").map(
    ({ state, reason, from_ts, to_ts }) => [
      state,
      reason,
      toUnits(from_ts as number),
      toUnits(to_ts as number),
    ],
  );
