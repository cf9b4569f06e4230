import { existsSync, mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
const MIN_MEMORY_BYTES = 2 ** 30;

/** Creates a folder in memory where there is room: tests commit often, and the crash sweep is what tests the disk. */
export function makeMemoryFolder(prefix: string): string {
  return mkdtempSync(join(hasMemory() ? MEMORY : tmpdir(), prefix));
}

function hasMemory(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > MIN_MEMORY_BYTES;
}
