import { errorCode } from "../../model/failure.ts";
import { reportAndExit } from "../../runtime/child-process.ts";
import { connectReader } from "./connection.ts";

/** `unfinished`: the check timed out or failed before it found any damage. */
export interface QuickCheckResult {
  readonly outcome: "sound" | "damaged" | "unfinished";
  /** What is damaged. */
  readonly finding?: string;
}

// Runs in its own process, which can be killed: better-sqlite3 cannot interrupt a running statement.
function quickCheckFile(path: string): QuickCheckResult {
  try {
    using connection = connectReader(path);
    const finding = connection.findDamage();
    return finding === undefined ? { outcome: "sound" } : { outcome: "damaged", finding };
  } catch (error) {
    const finding = errorCode(error);
    // Any other error (permissions, memory) says nothing about the file.
    const isDamage = /^SQLITE_(CORRUPT|NOTADB)/.test(finding);
    return isDamage ? { outcome: "damaged", finding } : { outcome: "unfinished" };
  }
}

await reportAndExit(() => quickCheckFile(process.argv[2] ?? ""), "ingest_bug");
