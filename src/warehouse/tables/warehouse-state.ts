import { type WarehouseStateRow, warehouseState } from "../schema/coverage.ts";
import type { Connection, Orm } from "../sqlite/connection.ts";

const state = (orm: Orm) => orm.select().from(warehouseState).prepare();

/** The row of `warehouse_state`. Its file must be of this version. */
export function readWarehouseState(connection: Pick<Connection, "prepared">): WarehouseStateRow {
  const row = connection.prepared(state).get();
  if (!row) throw new Error("warehouse_state has no row");
  return row;
}
