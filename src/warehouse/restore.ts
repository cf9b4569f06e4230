import { linkSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode, exitCode, Failure, usageFailure } from "../model/failure.ts";
import type { Micros } from "../model/time.ts";
import { backUp, openForBackup } from "./backup.ts";
import { wasWarehouse } from "./integrity.ts";
import { migrate } from "./migrate.ts";
import type { WarehouseStateRow } from "./schema/coverage.ts";
import { connectWriter } from "./sqlite/connection.ts";
import { createFolder, resolvePath, syncToDisk } from "./sqlite/disk.ts";
import { findAsideName } from "./sqlite/quarantine.ts";
import { removeShutdownMarker, writeShutdownMarker } from "./sqlite/shutdown-marker.ts";
import { translateErrors } from "./sqlite/sqlite-errors.ts";
import { createEmptyWalFiles, removeDatabase, truncateWal, walSuffixes } from "./sqlite/wal.ts";
import { acquireWriterLock } from "./sqlite/writer-lock.ts";
import { renameJournal } from "./tables/journal.ts";
import { markRestored } from "./tables/transaction.ts";

/**
 * Puts a copy in the place of the warehouse. Everything is copied, checked and migrated before the one rename that changes
 * the warehouse, so a killed restore leaves the earlier one in place. `setAside`: the new name of that; null: there was none.
 */
export function restoreWarehouse(copy: string, given: string, now: Micros) {
  const warehouse = translateErrors(given, () => resolvePath(given));
  translateErrors(warehouse, () => createFolder(dirname(warehouse)));
  wasWarehouse(warehouse);
  const lock = acquireWriterLock(warehouse);
  const restored = `${warehouse}.restored`;
  try {
    copyChecked(copy, warehouse, restored);
    const epoch = migrateFile(restored, now);
    const setAside = setWarehouseAside(warehouse, now);
    translateErrors(warehouse, () => {
      removeShutdownMarker(warehouse);
      renameSync(restored, warehouse);
      syncToDisk(dirname(warehouse));
      createEmptyWalFiles(warehouse);
      writeShutdownMarker(warehouse, "clean", { epoch });
    });
    return { warehouse, bytes: statSync(warehouse).size, setAside };
  } finally {
    removeDatabase(restored);
    lock.release();
  }
}

/** Copies a file to `restored`. Throws for a damaged one, a newer one, and another program's. */
function copyChecked(given: string, warehouse: string, restored: string): void {
  const file = translateErrors(given, () => resolvePath(given));
  const [copy, target] = [file, warehouse].map((path) => statSync(path, { throwIfNoEntry: false }));
  if (copy && target && copy.ino === target.ino && copy.dev === target.dev) {
    throw usageFailure(`${given} is the warehouse itself`, "give the file of another copy");
  }
  if (!copy?.isFile() || copy.size === 0) {
    throw new Failure(`there is no warehouse at ${given}`, {
      code: "no_warehouse",
      remedy: "give a file that `mds-sync backup` made",
      exit: exitCode.usage,
    });
  }
  using reader = openForBackup(file);
  const damage = translateErrors(given, () => reader.findDamage());
  if (damage !== undefined)
    throw new Failure(`${given} is damaged (${damage})`, {
      code: "copy_damaged",
      remedy: "use another copy; the warehouse is unchanged",
    });
  removeDatabase(restored);
  backUp(reader, restored, { replace: true, access: target });
}

/** Migrates a copy that nobody else uses, and makes it a file of its own. Returns its epoch. */
function migrateFile(path: string, restoredAt: Micros): number {
  using connection = connectWriter(path);
  return translateErrors(path, () => {
    migrate(connection);
    renameJournal(connection);
    markRestored(connection, restoredAt);
    return connection.value<WarehouseStateRow["epoch"]>("SELECT epoch FROM warehouse_state");
  });
}

/** Gives the warehouse a second, dated name; the caller then replaces the first. */
function setWarehouseAside(warehouse: string, now: Micros): string | null {
  if (!statSync(warehouse, { throwIfNoEntry: false })) return null;
  // docs/decisions/wal.md. If the file is damaged, the WAL is set aside beside it.
  try {
    using connection = connectWriter(warehouse);
    truncateWal(connection);
  } catch (error) {
    if (!(error instanceof Failure || errorCode(error).startsWith("SQLITE_"))) throw error;
  }
  const aside = findAsideName(warehouse, now);
  translateErrors(warehouse, () => {
    linkSync(warehouse, aside);
    for (const suffix of walSuffixes)
      if (statSync(warehouse + suffix, { throwIfNoEntry: false }))
        renameSync(warehouse + suffix, aside + suffix);
    syncToDisk(dirname(warehouse));
  });
  return aside;
}
