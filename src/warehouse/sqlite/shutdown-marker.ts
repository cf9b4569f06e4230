import { rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { readJsonFile, replaceFile, syncToDisk } from "./disk.ts";

/**
 * How the last writer left the file. `clean`: closed normally and unchanged since; `unclean`: killed, or changed by
 * another program; `suspect`: a read met corruption; `damaged`: a check found corruption.
 */
type LastShutdown =
  | { readonly kind: "clean" | "unclean" | "suspect" }
  | { readonly kind: "damaged"; readonly finding: string };

interface ShutdownMarker {
  readonly end: "clean" | "suspect" | "damaged";
  readonly finding?: string;
  /** The fingerprint of database and WAL when the marker was written. */
  readonly files?: string;
  /** The epoch of the writer that closed the file. */
  readonly epoch?: number;
}

/**
 * A file beside the warehouse, so that it stays readable when the database is not. The writer removes it before its
 * first write, so a crash at any point leaves none; a missing marker means `unclean`.
 */
const markerOf = (path: string) => `${path}.end`;

export function readLastShutdown(path: string): LastShutdown {
  const marker = readJsonFile<ShutdownMarker>(markerOf(path));
  if (marker === undefined) return { kind: "unclean" };
  const isUnchanged = marker.files === fingerprintFiles(path).join("; ");
  if (marker.end === "clean") return { kind: isUnchanged ? "clean" : "unclean" };
  // The finding does not apply to a file that has replaced the checked one.
  return marker.end === "damaged" && isUnchanged
    ? { kind: "damaged", finding: marker.finding ?? "damage was found" }
    : { kind: "suspect" };
}

/**
 * If a WAL appeared after a clean shutdown, returns the epoch that it must contain: other programs that write to this
 * database do not change its epoch, and another warehouse has a different one. Undefined: no new WAL, or no clean
 * shutdown.
 */
export function expectedEpochOfNewWal(path: string): number | undefined {
  const marker = readJsonFile<ShutdownMarker>(markerOf(path));
  if (marker?.end !== "clean" || marker.files === undefined) return undefined;
  const [database, wal] = fingerprintFiles(path);
  return marker.files.startsWith(`${database}; `) && wal !== "" && marker.files !== `${database}; ${wal}`
    ? marker.epoch
    : undefined;
}

/** Call before the first write. Returns after the removal is on disk. */
export function removeShutdownMarker(path: string): void {
  if (!statSync(markerOf(path), { throwIfNoEntry: false })) return;
  rmSync(markerOf(path), { force: true });
  syncToDisk(dirname(path));
}

/** Call after the database is closed. */
export function writeShutdownMarker(
  path: string,
  end: ShutdownMarker["end"],
  details: Pick<ShutdownMarker, "finding" | "epoch"> = {},
): void {
  const marker: ShutdownMarker = { end, files: fingerprintFiles(path).join("; "), ...details };
  replaceFile(markerOf(path), JSON.stringify(marker));
}

/** Writing to a file or replacing it changes its inode, size or modification time; reading does not. */
function fingerprintFiles(path: string): [database: string, wal: string] {
  const fingerprint = (file: string) => {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    return found && found.size > 0n ? `${found.ino} ${found.size} ${found.mtimeNs}` : "";
  };
  return [fingerprint(path), fingerprint(`${path}-wal`)];
}
