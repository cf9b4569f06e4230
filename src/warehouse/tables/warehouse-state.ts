import { type WarehouseStateRow, warehouseState } from "../schema/coverage.ts";
import type { Orm, SqlRunner } from "../sqlite/connection.ts";

const state = (orm: Orm) => orm.select().from(warehouseState).prepare();

/** The row of `warehouse_state`. Its file must be of this version. */
export function readWarehouseState(connection: SqlRunner): WarehouseStateRow {
  const row = connection.prepared(state).get();
  if (!row) throw new Error("warehouse_state has no row");
  return row;
}
