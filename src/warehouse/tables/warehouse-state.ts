import { type WarehouseStateRow, warehouseState } from "../schema/coverage.ts";
import type { SqlRunner } from "../sqlite/connection.ts";

/** The row of `warehouse_state`. Its file must be of this version. */
export function readWarehouseState(connection: SqlRunner): WarehouseStateRow {
  const row = connection.orm.select().from(warehouseState).get();
  if (!row) throw new Error("warehouse_state has no row");
  return row;
}
