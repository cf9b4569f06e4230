import { type SentFailure, sendFailure } from "../../model/failure.ts";
import { reportAndEnd } from "../../runtime/child-process.ts";
import { backUp, openForBackUp } from "../../warehouse/backup.ts";

/** What the process says once, before it ends. */
export type BackUpReport = { readonly bytes: number } | { readonly failure: SentFailure };

// A process of its own: SQLite cannot be interrupted while it copies, a process can.
const [path = "", file = "", force] = process.argv.slice(2);
const parent = process.ppid;

function copy(): BackUpReport {
  try {
    const reader = openForBackUp(path);
    try {
      // Another run may have been told to make the same copy since the one that asked was killed.
      return {
        bytes: backUp(reader, file, { replace: force === "force", isWanted: () => process.ppid === parent }),
      };
    } finally {
      reader.close();
    }
  } catch (error) {
    return { failure: sendFailure(error, "backup_bug") };
  }
}

reportAndEnd(copy());
