import { Failure } from "../../model/failure.ts";
import type { SharedSession } from "./session.ts";

/*
 * Where PostgreSQL is built with LLVM, it compiles a query that it expects to be expensive. It expects that of views that
 * compute bars from ticks: to compile one takes seconds, to run it milliseconds. No view can turn that off, a database can.
 */

/** Whether a new session of this database compiles its queries. */
export async function isCompiling(session: SharedSession): Promise<boolean> {
  const [row] = await session.query<{ found: boolean }>(
    "SET LOCAL jit = DEFAULT; SELECT pg_jit_available() AS found",
  );
  return row?.found === true;
}

/** Turns compiling off for whoever connects to the database, if it is ours and nobody has set this. */
export async function turnOffCompiling(session: SharedSession): Promise<void> {
  const sql = `DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_settings s JOIN pg_database d ON d.datname = current_database() WHERE s.name = 'jit'
      AND s.reset_val = 'on' AND pg_has_role(d.datdba, 'USAGE') AND NOT EXISTS (SELECT FROM pg_db_role_setting r
        WHERE r.setdatabase = d.oid AND r.setrole = 0 AND array_to_string(r.setconfig, ' ') ~ '(^| )jit='))
    THEN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END IF; END $$`;
  await session.query(sql).catch((error: unknown) => {
    // Some services refuse it; `doctor` reports it.
    if (!(error instanceof Failure)) throw error;
  });
}
