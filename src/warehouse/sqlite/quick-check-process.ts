import { errorCode } from "../../model/failure.ts";
import { reportAndExit } from "../../runtime/child-process.ts";
import { connectReader } from "./connection.ts";

/** The output of `PRAGMA quick_check`, or the code of the error that stopped it. */
export type QuickCheckReport = { readonly result: string } | { readonly code: string };

// Runs in its own process, which can be killed: better-sqlite3 cannot interrupt a running statement.
function quickCheckFile(path: string): QuickCheckReport {
  try {
    const connection = connectReader(path);
    try {
      return { result: String(connection.database.pragma("quick_check(1)", { simple: true })) };
    } finally {
      connection.close();
    }
  } catch (error) {
    return { code: errorCode(error) };
  }
}

await reportAndExit(() => quickCheckFile(process.argv[2] ?? ""), "ingest_bug");
