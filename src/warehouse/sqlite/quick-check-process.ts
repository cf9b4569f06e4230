import { reportAndEnd } from "../../runtime/child-process.ts";
import { connectReader } from "./connection.ts";

/** The finding of the check, or the code of the error that ended it. */
export type QuickCheckReport = { readonly said: string } | { readonly code: string };

// A process of its own: SQLite cannot be interrupted here, a process can.
function check(path: string): QuickCheckReport {
  try {
    const connection = connectReader(path);
    try {
      return { said: String(connection.database.pragma("quick_check(1)", { simple: true })) };
    } finally {
      connection.close();
    }
  } catch (error) {
    return { code: error instanceof Error && "code" in error ? String(error.code) : "" };
  }
}

reportAndEnd(check(process.argv[2] ?? ""));
