import { writeSync } from "node:fs";
import Database from "better-sqlite3";
import { Failure } from "../../../src/model/failure.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { migrate } from "../../../src/warehouse/migrate.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { connectWriter } from "../../../src/warehouse/sqlite/connection.ts";
import { openWarehouse } from "../../../src/warehouse/writer.ts";
import { tick } from "./records.ts";

/*
 * A process of its own beside a test: `node holder.ts ROLE PATH`. Says what it has done on stdout, one line each, and
 * acts on each line that it reads.
 */
const [role, path = "", folder] = process.argv.slice(2);
const say = (line: string) => void writeSync(1, `${line}\n`);

function asWriter(): () => void {
  const warehouse = openWarehouse(path, { clock: systemClock });
  let next = 0;
  say("open");
  return () => {
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(++next, "1")], "rest"));
    say(`wrote ${next}`);
  };
}

/** Dies where a migration says `SELECT die()`. */
function asMigrator(): () => void {
  const connection = connectWriter(path);
  connection.database.function("die", () => process.kill(process.pid, "SIGKILL"));
  migrate(connection, { ...(folder !== undefined && { folder }) });
  say("migrated");
  return () => say("idle");
}

/** Another program's connection, in a transaction that stays open. */
function asGuest(begin: string): () => void {
  const database = new Database(path);
  database.exec(begin);
  database.prepare("SELECT count(*) FROM index_tick_rows").get();
  say("open");
  return () => {
    database.exec("COMMIT");
    say("closed");
  };
}

function start(): () => void {
  if (role === "writer") return asWriter();
  if (role === "migrator") return asMigrator();
  return asGuest(role === "reader" ? "BEGIN" : "BEGIN IMMEDIATE");
}

try {
  const act = start();
  process.stdin.on("data", () => {
    try {
      act();
    } catch (error) {
      say(error instanceof Failure ? `failure ${error.code}` : `error ${String(error)}`);
    }
  });
} catch (error) {
  say(
    error instanceof Failure ? `failure ${error.code} ${error.exit} ${error.line}` : `error ${String(error)}`,
  );
  process.exitCode = 1;
}
