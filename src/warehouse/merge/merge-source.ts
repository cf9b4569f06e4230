import { rmSync } from "node:fs";
import { Failure } from "../../model/failure.ts";
import { backUp, removeStalePartialCopies } from "../backup.ts";
import { isSameService, readServiceIdentity, type ServiceIdentity } from "../lookups/service-identity.ts";
import { findPendingMigrations } from "../migrate.ts";
import { migrateFile, openCopy } from "../restore.ts";
import { type Connection, connectReader } from "../sqlite/connection.ts";
import { translateErrors } from "../sqlite/sqlite-errors.ts";
import { walSuffixes } from "../sqlite/wal.ts";

/** Another warehouse, attached to a connection as `other`. */
interface MergeSource {
  /** Call it before the connection is closed. */
  detach(): void;
}

/** Checks another warehouse and attaches it as `other`. Throws if its data is from another service. */
export function attachSource(connection: Connection, given: string): MergeSource {
  const { database, path: warehouse } = connection;
  const file = openCurrentCopy(given, warehouse);
  try {
    assertSameService(connection, file.reader, given);
    translateErrors(given, () => database.prepare("ATTACH DATABASE ? AS other").run(file.reader.path));
  } catch (error) {
    file.close();
    throw error;
  }
  return {
    detach() {
      database.exec("DETACH DATABASE other");
      // Closed last: SQLite would let a writable connection, as the last one, checkpoint the WAL of the other file.
      file.close();
    },
  };
}

interface OpenFile {
  readonly reader: Connection;
  close(): void;
}

/** Opens a warehouse of the present version. An older one is copied beside ours and migrated there; the file stays as it is. */
function openCurrentCopy(given: string, warehouse: string): OpenFile {
  const reader = openCopy(given, warehouse);
  const close = () => reader.close();
  if (findPendingMigrations(reader).length === 0) return { reader, close };
  removeStalePartialCopies(warehouse);
  const path = `${warehouse}.unfinished-${process.pid}`;
  const remove = () => {
    for (const suffix of ["", ...walSuffixes]) rmSync(path + suffix, { force: true });
  };
  try {
    backUp(reader, path, { replace: true });
    migrateFile(path);
    const copy = connectReader(path);
    return {
      reader: copy,
      close() {
        copy.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  } finally {
    close();
  }
}

function assertSameService(connection: Connection, other: Connection, given: string): void {
  const [ours, theirs] = [
    readServiceIdentity(connection, "assets"),
    readServiceIdentity(other, "assets"),
  ] as const;
  if (isSameService(ours.ids, theirs.ids)) return;
  const nameOf = ({ url }: ServiceIdentity) => url ?? "another service";
  throw new Failure(
    `${given} has the data of ${nameOf(theirs)}, and ${connection.path} that of ${nameOf(ours)}`,
    {
      code: "other_service",
      remedy: "merge only copies of the same service; nothing was changed",
    },
  );
}
