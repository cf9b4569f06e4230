import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { declareTargets, type Target } from "../../../src/warehouse/coverage/targets.ts";
import { presentTs } from "../../../src/warehouse/views/sqlite-dialect.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { present } from "../present.ts";
import { openTestWarehouse, queryRows } from "./open-warehouse.ts";

/** The settle delay of a target. */
export const DELAY = 60 * MICROS_PER_SECOND;
export { present };

const UNIT = 20 * MICROS_PER_SECOND;
export const HOUR = 3600 * MICROS_PER_SECOND;

/** The first series of index ticks. */
export const key = { stream: "index_ticks", series: 1 } as const;

const toUnits = (ts: number) => Math.floor((ts - present) / UNIT);
/** The view reads SQLite's clock: this sets it to half a unit after `present`, beside the whole hours that a test has set. */
const skewSql =
  () => `UPDATE warehouse_state SET clock_skew = CAST(round(clock_skew * 1.0 / ${HOUR}) AS INTEGER) * ${HOUR}
  + ${present + UNIT / 2} - CAST(unixepoch('subsec') * 1000000 AS INTEGER)`;

/** Selects the first series of index ticks from this timestamp on. */
export function declareTarget(warehouse: WarehouseWriter, from: number, more: Partial<Target> = {}): void {
  warehouse.transaction((transaction) => {
    const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
    const key = { stream: "index_ticks", series } as const;
    const rules = { settleDelay: DELAY, period: DELAY / 2, step: 1, serviceWindow: 200 * MICROS_PER_DAY };
    declareTargets(transaction, "index_ticks", [{ key, from, ...rules, ...more }], present);
  });
}

/** A warehouse in which the first series of index ticks is selected from this timestamp on. */
export function openTarget(from: number, more: Partial<Target> = {}): WarehouseWriter {
  const warehouse = openTestWarehouse();
  declareTarget(warehouse, from, more);
  return warehouse;
}

/** State, reason and bounds in units of each row of the view `gaps`, as of `present`. */
export function gapsOf(warehouse: WarehouseWriter): unknown[][] {
  warehouse.connection.database.exec(skewSql());
  return queryRows(warehouse, "SELECT state, reason, from_ts, to_ts FROM gaps ORDER BY from_ts").map(
    ({ state, reason, from_ts, to_ts }) => [
      state,
      reason,
      toUnits(from_ts as number),
      toUnits(to_ts as number),
    ],
  );
}

/** The view `gaps` as a relation for SQL, with the time of a manual clock instead of SQLite's. */
export function gapsAt(query: (sql: string) => readonly { readonly sql?: unknown }[], nowMs: number): string {
  const [view] = query("SELECT sql FROM sqlite_master WHERE name = 'gaps'");
  const body = String(view?.sql).replace(/^CREATE VIEW\s+\S+\s+AS/i, "");
  return `(${body.replaceAll(presentTs, String(Math.floor(nowMs) * 1000))})`;
}
