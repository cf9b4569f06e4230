import { existsSync, statSync } from "node:fs";
import { Failure } from "../model/failure.ts";
import type { Micros } from "../model/time.ts";
import { pendingMigrations } from "./migrate.ts";
import { openForInspection } from "./sqlite/connection.ts";
import { awaitingSalvage, finishSettingAside, type SetAside, setAside } from "./sqlite/quarantine.ts";
import { epochOfNewWal, readLastEnd } from "./sqlite/shutdown-marker.ts";
import { asFailure, withFailures } from "./sqlite/sqlite-errors.ts";

export interface Inspection {
  /** What was found at the path and could not be used, with what an earlier start could not do about it. */
  readonly setAside: readonly SetAside[];
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
  withFailures(path, () => finishSettingAside(path));
  if (hasForeignWal(path))
    withFailures(path, () => setAside(path, "a -wal file of another database", now, "wal"));
  const found = judge(path, mayDefer);
  const { unusable } = found;
  if (unusable !== undefined) withFailures(path, () => setAside(path, unusable, now));
  return { setAside: awaitingSalvage(path), isChecked: found.isChecked };
}

function judge(path: string, mayDefer: boolean): { unusable?: string; isChecked: boolean } {
  const sound = { isChecked: true };
  const aside = (unusable: string) => ({ unusable, isChecked: true });
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) {
    return existsSync(`${path}-wal`) ? aside("a -wal file without its database") : sound;
  }
  if (size === 0) return aside("the file is empty");
  const last = readLastEnd(path);
  if (last.kind === "damaged") return aside(last.finding);
  const isDeferred = mayDefer && last.kind === "unclean" && size > CHECKED_AT_ONCE_BYTES;
  const damage = findDamage(path, last.kind !== "clean" && !isDeferred);
  return damage === undefined ? { isChecked: !isDeferred } : aside(damage);
}

/**
 * Whether a WAL lies beside the file that was not written to it. SQLite would take it for the file's own, since a WAL says
 * nothing of its database, and replace pages by those of the other.
 */
function hasForeignWal(path: string): boolean {
  const epoch = epochOfNewWal(path);
  return epoch !== undefined && readEpoch(path) !== epoch;
}

/** The epoch as the file and the WAL beside it say together; undefined: they make no warehouse. */
function readEpoch(path: string): unknown {
  let reader: ReturnType<typeof openForInspection> | undefined;
  try {
    reader = openForInspection(path);
    return reader.database.prepare("SELECT epoch FROM warehouse_state").pluck().get();
  } catch (error) {
    const failure = asFailure(error, path);
    if (failure instanceof Failure && failure.code !== "db_corrupt") throw failure;
    return undefined;
  } finally {
    reader?.close();
  }
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
