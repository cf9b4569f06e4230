import { type SerialisedFailure, serialiseFailure } from "../../../model/failure.ts";
import { sendMessageAndExit } from "../../../runtime/child-process.ts";
import { backUp, openForBackup } from "../../../warehouse/backup.ts";

/** The one message that this process sends before it exits. */
export type BackupProcessReport = { readonly bytes: number } | { readonly failure: SerialisedFailure };

// The copy runs in its own process, because SQLite cannot be interrupted while it copies.
const [path = "", file = "", force] = process.argv.slice(2);
const parent = process.ppid;

function copy(): BackupProcessReport {
  try {
    const reader = openForBackup(path);
    try {
      // If the parent has died, a second backup may be writing to the same file: do not finish this one.
      return {
        bytes: backUp(reader, file, {
          replace: force === "force",
          shouldFinish: () => process.ppid === parent,
        }),
      };
    } finally {
      reader.close();
    }
  } catch (error) {
    return { failure: serialiseFailure(error, "backup_bug") };
  }
}

sendMessageAndExit(copy());
