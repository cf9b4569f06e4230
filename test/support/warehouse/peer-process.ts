import { writeSync } from "node:fs";
import Database from "better-sqlite3";
import { Failure } from "../../../src/model/failure.ts";
import { systemClock } from "../../../src/runtime/clock.ts";

// Usage: `node peer-process.ts ROLE PATH [FOLDER]`. Performs its action once per line on stdin, and prints one line per
// result.
const [role, path = "", folder] = process.argv.slice(2);
const print = (line: string) => void writeSync(1, `${line}\n`);

// Each role loads what it needs: another program has nothing of the product.
async function asWriter(): Promise<() => void> {
  const [{ openWriter }, { storeTicks }, { tick }] = await Promise.all([
    import("../../../src/warehouse/writer.ts"),
    import("./write-records.ts"),
    import("./records.ts"),
  ]);
  const warehouse = openWriter(path, { clock: systemClock });
  let next = 0;
  print("open");
  return () => {
    storeTicks(warehouse, [tick(++next, "1")]);
    print(`wrote ${next}`);
  };
}

/** Kills itself where a migration contains `SELECT die()`. */
async function asMigrator(): Promise<() => void> {
  const { connectWriter } = await import("../../../src/warehouse/sqlite/connection.ts");
  const { migrate } = await import("../../../src/warehouse/migrate.ts");
  const connection = connectWriter(path);
  connection.database.function("die", () => process.kill(process.pid, "SIGKILL"));
  migrate(connection, { ...(folder !== undefined && { folder }) });
  print("migrated");
  return () => print("idle");
}

/** Acts as another program that keeps a transaction open. */
function asOtherProgram(begin: string): () => void {
  const database = new Database(path);
  database.exec(begin);
  database.prepare("SELECT count(*) FROM index_tick_rows").get();
  print("open");
  return () => {
    database.exec("COMMIT");
    print("closed");
  };
}

function start(): Promise<() => void> | (() => void) {
  if (role === "writer") return asWriter();
  if (role === "migrator") return asMigrator();
  return asOtherProgram(role === "reader" ? "BEGIN" : "BEGIN IMMEDIATE");
}

try {
  const act = await start();
  process.stdin.on("data", () => {
    try {
      act();
    } catch (error) {
      print(error instanceof Failure ? `failure ${error.code}` : `error ${String(error)}`);
    }
  });
} catch (error) {
  print(
    error instanceof Failure
      ? `failure ${error.code} ${error.exit} ${error.summary}`
      : `error ${String(error)}`,
  );
  process.exitCode = 1;
}
