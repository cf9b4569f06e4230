import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { openWarehouse, type Warehouse, type WarehouseOptions } from "../../../src/warehouse/writer.ts";
import { TurnedClock } from "../manual-clock.ts";

/** A directory on a real disk, gone after the test. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "mds-warehouse-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function openScratch(options: Partial<WarehouseOptions> & { path?: string } = {}): Warehouse {
  const { path = join(scratch(), "mds.sqlite"), ...rest } = options;
  const warehouse = openWarehouse(path, { clock: new TurnedClock(), ...rest });
  onTestFinished(() => warehouse.close());
  return warehouse;
}

export function rows(warehouse: Warehouse, sql: string, ...values: unknown[]): Record<string, unknown>[] {
  return warehouse.connection.database.prepare(sql).all(...values) as Record<string, unknown>[];
}

/** The Failure that `work` ends with. */
export function failureOf(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("nothing failed");
}
