import { rmSync } from "node:fs";
import { onTestFinished } from "vitest";
import { makeMemoryFolder } from "./memory-folder.ts";

/** Runs a function at the end of a test (`onTestFinished`), or of all tests of a file (`afterAll`). */
export type AtEnd = (end: () => Promise<void> | void) => void;

/** Creates a folder that is deleted when the test ends. */
export function temporaryFolder(atEnd: AtEnd = onTestFinished): string {
  const folder = makeMemoryFolder("mds-sync-test-");
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
