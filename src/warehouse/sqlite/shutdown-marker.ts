import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { syncToDisk } from "./disk.ts";

/**
 * How the last writer left the file. `clean`: closed in order, and nobody has touched the file since; `unclean`: killed,
 * or changed by others; `suspect`: it met damage while it read; `damaged`: a check found damage.
 */
export type LastEnd =
  | { readonly kind: "clean" | "unclean" | "suspect" }
  | { readonly kind: "damaged"; readonly finding: string };

interface Mark {
  readonly end: "clean" | "suspect" | "damaged";
  readonly finding?: string;
  /** What the files looked like then. */
  readonly files?: string;
  /** Which writer left it. */
  readonly epoch?: number;
}

/**
 * The mark lies beside the warehouse, not in it: what it says must be readable when the warehouse is not. It is gone while
 * somebody writes, so a crash at any moment leaves none, and none means that nothing is known.
 */
function markFile(path: string): string {
  return `${path}.end`;
}

export function readLastEnd(path: string): LastEnd {
  const mark = readMark(path);
  if (mark === undefined) return { kind: "unclean" };
  const isSame = mark.files === describeFiles(path).join("; ");
  if (mark.end === "clean") return { kind: isSame ? "clean" : "unclean" };
  // What was found out about a file says nothing of one that was put in its place since.
  return mark.end === "damaged" && isSame
    ? { kind: "damaged", finding: mark.finding ?? "damage was found" }
    : { kind: "suspect" };
}

/**
 * Whose WAL it must be that has appeared beside a file which nobody has touched since its clean end: a guest writes under
 * the last writer's epoch, another warehouse has one of its own. Undefined: nothing has appeared, or nothing is known.
 */
export function epochOfNewWal(path: string): number | undefined {
  const mark = readMark(path);
  if (mark?.end !== "clean" || mark.files === undefined) return undefined;
  const [database, wal] = describeFiles(path);
  return mark.files.startsWith(`${database}; `) && wal !== "" && mark.files !== `${database}; ${wal}`
    ? mark.epoch
    : undefined;
}

/** Takes the mark away, for good, before the first write. */
export function beginWriting(path: string): void {
  if (!statSync(markFile(path), { throwIfNoEntry: false })) return;
  rmSync(markFile(path), { force: true });
  syncToDisk(dirname(path));
}

/** To be called once the database is closed. */
export function noteEnd(path: string, end: Mark["end"], more: Pick<Mark, "finding" | "epoch"> = {}): void {
  const mark: Mark = { end, files: describeFiles(path).join("; "), ...more };
  writeFileSync(`${markFile(path)}.new`, JSON.stringify(mark));
  renameSync(`${markFile(path)}.new`, markFile(path));
}

/** Whoever writes to a file, or puts another in its place, changes one of these. A reader does not. */
function describeFiles(path: string): [database: string, wal: string] {
  const describe = (file: string) => {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    return found && found.size > 0n ? `${found.ino} ${found.size} ${found.mtimeNs}` : "";
  };
  return [describe(path), describe(`${path}-wal`)];
}

function readMark(path: string): Mark | undefined {
  try {
    return JSON.parse(readFileSync(markFile(path), "utf8")) as Mark;
  } catch {
    return undefined;
  }
}
