import { type WarehouseStateRow, warehouseState } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";

/** The row of `warehouse_state`. Its file must be of this version. */
export function readWarehouseState({ orm }: Pick<Connection, "orm">): WarehouseStateRow {
  const [state] = orm.select().from(warehouseState).all();
  if (!state) throw new Error("warehouse_state has no row");
  return state;
}
