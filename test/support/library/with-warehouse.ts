import { openWarehouse, type Warehouse } from "../../../src/library/open-warehouse.ts";

/** Opens a warehouse file with the library, and closes it. */
export function withWarehouse<T>(path: string, work: (warehouse: Warehouse) => T): T {
  using warehouse = openWarehouse(path);
  return work(warehouse);
}
