import { rmSync } from "node:fs";
import { onTestFinished } from "vitest";
import { makeMemoryFolder } from "./memory-folder.ts";

/** Creates a folder that is deleted when the test ends. */
export function temporaryFolder(): string {
  const folder = makeMemoryFolder("mds-sync-test-");
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
