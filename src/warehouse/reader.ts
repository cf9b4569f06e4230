import { existsSync } from "node:fs";
import { exitCode, Failure } from "../model/failure.ts";
import { type Connection, connectReader } from "./connection.ts";
import { resolvePath } from "./disk.ts";
import { pendingMigrations } from "./migrate.ts";
import { withFailures } from "./sqlite-failure.ts";

/** For looking on, whether or not a writer runs: any number of readers, from any thread or process. */
export function openReader(given: string): Connection {
  if (!existsSync(given)) {
    throw new Failure(`there is no warehouse at ${given} yet`, {
      family: "operator",
      code: "no_warehouse",
      remedy: "run `mds-sync run` or `mds-sync backfill` first, or set warehouse.path",
      exit: exitCode.usage,
    });
  }
  const reader = connectReader(resolvePath(given));
  try {
    const pending = withFailures(given, () => pendingMigrations(reader));
    if (pending.length > 0) {
      throw new Failure(`${given} was written by an older version of mds-sync`, {
        family: "operator",
        code: "older_warehouse",
        remedy: "start `mds-sync run` or `mds-sync backfill` once: it brings the file up to date",
        exit: exitCode.usage,
      });
    }
    return reader;
  } catch (error) {
    reader.close();
    throw error;
  }
}
