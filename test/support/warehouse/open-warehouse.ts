import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { renameJournal } from "../../../src/warehouse/tables/journal.ts";
import { openWriter, type WarehouseWriter, type WriterOptions } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../manual-clock.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "./empty-warehouse.ts";

export interface TestWarehouseOptions extends Partial<WriterOptions> {
  readonly path?: string;
  /** Also the views that neither the sync nor its tests read. */
  readonly hasAllViews?: boolean;
}

export function openTestWarehouse(options: TestWarehouseOptions = {}): WarehouseWriter {
  const { path = join(temporaryFolder(), "mds.sqlite"), hasAllViews = false, ...rest } = options;
  const isCopy = Object.keys(options).every((name) => name === "clock" || name === "hasAllViews");
  if (isCopy) copyEmptyWarehouse(path, hasAllViews ? undefined : viewsBesideSync);
  const warehouse = openWriter(path, { clock: new ManualClock(), ...rest });
  // Every copy is a warehouse of its own.
  if (isCopy) renameJournal(warehouse.connection);
  onTestFinished(() => warehouse.close());
  return warehouse;
}

export function queryRows(
  warehouse: WarehouseWriter,
  sql: string,
  ...values: unknown[]
): Record<string, unknown>[] {
  return warehouse.connection.statement<Record<string, unknown>>(sql).all(...values);
}

/** Runs `work` and returns the Failure that it throws. */
export function catchFailure(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("expected a Failure, but nothing was thrown");
}
