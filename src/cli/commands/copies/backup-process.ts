import { reportAndExit } from "../../../runtime/child-process.ts";
import { backUp, openForBackup } from "../../../warehouse/backup.ts";

// The copy runs in its own process, because SQLite cannot be interrupted while it copies.
const [path = "", file = "", force] = process.argv.slice(2);
const parent = process.ppid;

await reportAndExit(() => {
  const reader = openForBackup(path);
  try {
    // If the parent has died, a second backup may be writing to the same file: do not finish this one.
    return backUp(reader, file, { replace: force === "force", shouldFinish: () => process.ppid === parent });
  } finally {
    reader.close();
  }
}, "backup_bug");
