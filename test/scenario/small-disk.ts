import { spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** A real file system that is small enough to fill. */
export interface SmallDisk {
  readonly folder: string;
  /** Uses up all free space. */
  fill(): void;
  free(): void;
}

/** Returns undefined, with a message, if this user may not mount. */
export function mountSmallDisk(what: string): SmallDisk | undefined {
  const folder = temporaryFolder();
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=112m", "mds-sync-test", folder]);
  if (mounted.status !== 0) {
    process.stderr.write(`skipped, because only root may mount a small disk: ${what}\n`);
    return undefined;
  }
  // The temporary folder can only be removed after the unmount.
  onTestFinished(() => void spawnSync("umount", ["-l", folder]));
  const filler = join(folder, "filler");
  return {
    folder,
    fill() {
      const file = openSync(filler, "w");
      const chunk = Buffer.alloc(1024 * 1024);
      try {
        for (;;) writeSync(file, chunk);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler),
  };
}
