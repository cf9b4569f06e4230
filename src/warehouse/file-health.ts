import { existsSync, renameSync, statSync } from "node:fs";
import { Failure } from "../model/failure.ts";
import { formatInstant, type Micros } from "../model/instant.ts";
import { openForInspection } from "./connection.ts";
import { pendingMigrations } from "./migrate.ts";
import { asFailure } from "./sqlite-failure.ts";

/** A file that could not be used, kept for a person to look at. */
export interface SetAside {
  readonly reason: string;
  /** The new names of the database and of what lay beside it. */
  readonly files: readonly string[];
}

/**
 * Looks at the file before anybody writes: damaged ones are set aside, so that a new one can be filled; newer ones and
 * other programs' are refused as they are. Never reads the file by itself: closing that descriptor would drop the
 * locks of every SQLite connection that this process has on it.
 */
export function inspectFile(path: string, now: Micros): SetAside | undefined {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) {
    return existsSync(`${path}-wal`) ? setAside(path, "a -wal file without its database", now) : undefined;
  }
  if (size === 0) return setAside(path, "the file is empty", now);
  const damage = findDamage(path);
  return damage === undefined ? undefined : setAside(path, damage, now);
}

/** What is wrong with the file's structure, or undefined. Throws for a file that is sound but not to be written. */
function findDamage(path: string): string | undefined {
  let reader: ReturnType<typeof openForInspection> | undefined;
  try {
    reader = openForInspection(path);
    pendingMigrations(reader);
    const verdict = reader.database.pragma("quick_check(1)", { simple: true });
    return verdict === "ok" ? undefined : `quick_check: ${String(verdict)}`;
  } catch (error) {
    const failure = asFailure(error, path);
    if (failure instanceof Failure && failure.code === "db_corrupt") return failure.message;
    throw failure;
  } finally {
    reader?.close();
  }
}

/** Renames the database, its WAL and its index together, so that they still open as one under the new name. */
export function setAside(path: string, reason: string, now: Micros): SetAside {
  const stamp = formatInstant(now).slice(0, 19).replaceAll(":", "");
  let target = `${path}.aside-${stamp}Z`;
  for (let n = 2; ["", "-wal", "-shm"].some((end) => existsSync(target + end)); n++) {
    target = `${path}.aside-${stamp}Z.${n}`;
  }
  const files: string[] = [];
  for (const end of ["", "-wal", "-shm"]) {
    if (!existsSync(path + end)) continue;
    renameSync(path + end, target + end);
    files.push(target + end);
  }
  return { reason, files };
}

/** Remembers which file was opened; `assertSame` throws once another one, or none, lies at its path. */
export function watchFile(path: string): { assertSame(): void } {
  const { dev, ino } = statSync(path);
  return {
    assertSame() {
      const now = statSync(path, { throwIfNoEntry: false });
      if (now?.dev === dev && now.ino === ino) return;
      throw new Failure(`${path} was ${now ? "replaced" : "removed"} while it was open`, {
        family: "operator",
        code: "db_replaced",
        remedy: "start again; what was written since then went into the old file",
      });
    },
  };
}
