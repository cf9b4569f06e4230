import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openWriter } from "../../src/warehouse/writer.ts";

const MEMORY = "/dev/shm";
const MIN_MEMORY_BYTES = 2 ** 30;
/** Views that no part of the sync reads. SQLite parses every view each time a file is opened. */
const unusedViews = /^bars_|^reconcile_|_versions$|^(latest_)?(exchange|derivative)_ticks$|^market_caps$/;

/** A folder in memory where there is room: schedules commit often, and the crash sweep is what tests the disk. */
export function makeScratchFolder(): string {
  return mkdtempSync(join(hasMemory() ? MEMORY : tmpdir(), "mds-sync-proof-"));
}

function hasMemory(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > MIN_MEMORY_BYTES;
}

let template: string | undefined;

/** Copies an empty warehouse to `path`: creating one takes a tenth of the time of a schedule. */
export function copyEmptyWarehouse(path: string): void {
  template ??= createTemplate();
  copyFileSync(template, path);
}

function createTemplate(): string {
  const folder = makeScratchFolder();
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "mds.sqlite");
  const warehouse = openWriter(path, { clock: { now: () => Date.now() } });
  const { database } = warehouse.connection;
  const views = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'view'").pluck();
  for (const view of views.all()) if (unusedViews.test(view)) database.exec(`DROP VIEW "${view}"`);
  warehouse.close();
  return path;
}

/** The files of a warehouse at one moment of a run. */
export interface CrashedFiles {
  /** Puts them in the place of those that the run has left, as if it had been killed at that moment. */
  restore(): void;
}

const fileSuffixes = ["", "-wal", "-shm", ".end"];

/** Call it between two operations of the ingest: then no commit is half done. */
export function captureFiles(path: string): CrashedFiles {
  const contents = ["", "-wal"].flatMap((suffix) =>
    existsSync(path + suffix) ? [{ file: path + suffix, bytes: readFileSync(path + suffix) }] : [],
  );
  return {
    restore() {
      for (const suffix of fileSuffixes) rmSync(path + suffix, { force: true });
      for (const { file, bytes } of contents) writeFileSync(file, bytes);
    },
  };
}
