import { accessSync, constants } from "node:fs";
import { dirname, resolve } from "node:path";

/** Where SQLite puts what a large sort cannot keep in memory, after what the environment names. */
const usual = ["/var/tmp", "/usr/tmp", "/tmp", "."];

/**
 * Sees to it that SQLite finds a place for its temporary files: in a container whose root cannot be written, the folder of
 * the warehouse may be all there is. SQLite looks at the environment once, and a thread's environment is its own: to be
 * called in the main thread, before anything is opened.
 */
export function makeRoomForTemporaryFiles(path: string, env: NodeJS.ProcessEnv = process.env): void {
  const named = [env.SQLITE_TMPDIR, env.TMPDIR].filter((folder) => folder !== undefined);
  if (![...named, ...usual].some(isWritable)) env.SQLITE_TMPDIR = dirname(resolve(path));
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
