import { existsSync, renameSync, statSync } from "node:fs";
import { Failure } from "../model/failure.ts";
import { formatInstant, type Micros } from "../model/instant.ts";
import { openForInspection } from "./connection.ts";
import { readLastEnd } from "./last-end.ts";
import { pendingMigrations } from "./migrate.ts";
import { asFailure } from "./sqlite-failure.ts";

/** A file that could not be used, kept for a person to look at. */
export interface SetAside {
  readonly reason: string;
  /** The new names of the database and of what lay beside it. */
  readonly files: readonly string[];
}

export interface Inspection {
  readonly setAside: SetAside | undefined;
  /** False: nobody knows whether the file is sound, since it is too large to be checked while others wait. */
  readonly isChecked: boolean;
}

/**
 * A check reads the whole file, 100 MB or so a second: up to this size it is over before anybody minds. A larger one is
 * checked beside the work, where its opener can do so.
 */
const CHECKED_AT_ONCE_BYTES = 64 * 1024 * 1024;

/**
 * Looks at the file before anybody writes: damaged ones are set aside, so that a new one can be filled; newer ones and
 * other programs' are refused as they are. A file that was closed in order and not touched since is taken for sound, which
 * is what SQLite promises even after a crash. Never reads the file by itself: closing that descriptor would drop the
 * locks of every SQLite connection that this process has on it.
 */
export function inspectFile(path: string, now: Micros, { mayDefer = false } = {}): Inspection {
  const aside = (reason: string) => ({ setAside: setAside(path, reason, now), isChecked: true });
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) {
    return existsSync(`${path}-wal`)
      ? aside("a -wal file without its database")
      : { setAside: undefined, isChecked: true };
  }
  if (size === 0) return aside("the file is empty");
  const last = readLastEnd(path);
  if (last.kind === "damaged") return aside(last.finding);
  const isDeferred = mayDefer && last.kind === "unclean" && size > CHECKED_AT_ONCE_BYTES;
  const damage = findDamage(path, last.kind !== "clean" && !isDeferred);
  return damage === undefined ? { setAside: undefined, isChecked: !isDeferred } : aside(damage);
}

/** What is wrong with the file, or undefined. Throws for a file that is sound but not to be written. */
function findDamage(path: string, readsAll: boolean): string | undefined {
  let reader: ReturnType<typeof openForInspection> | undefined;
  try {
    reader = openForInspection(path);
    pendingMigrations(reader);
    if (!readsAll) return undefined;
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

/** The file that was opened, as far as its path still leads to it. */
export interface WatchedFile {
  isSame(): boolean;
  /** Throws once another file, or none, lies at the path. */
  assertSame(): void;
}

export function watchFile(path: string): WatchedFile {
  const { dev, ino } = statSync(path);
  const look = () => statSync(path, { throwIfNoEntry: false });
  const isSame = (now = look()) => now?.dev === dev && now.ino === ino;
  return {
    isSame: () => isSame(),
    assertSame() {
      const now = look();
      if (isSame(now)) return;
      throw new Failure(`${path} was ${now ? "replaced" : "removed"} while it was open`, {
        family: "operator",
        code: "db_replaced",
        remedy: "start again; what was written since then went into the old file",
      });
    },
  };
}
