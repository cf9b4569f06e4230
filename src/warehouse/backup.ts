import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Connection } from "./connection.ts";
import { withFailures } from "./sqlite-failure.ts";

/**
 * A consistent, compact copy, while the writer goes on: it reads one snapshot, so it cannot be starved by commits.
 * The copy appears under its name when it is whole.
 */
export function backUp(reader: Connection, file: string): void {
  const unfinished = `${file}.unfinished`;
  withFailures(file, () => {
    rmSync(unfinished, { force: true });
    reader.database.pragma("query_only = 0");
    try {
      reader.database.prepare("VACUUM INTO ?").run(unfinished);
    } finally {
      reader.database.pragma("query_only = 1");
    }
    sync(unfinished);
    renameSync(unfinished, file);
    sync(dirname(file));
  });
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}
