import { exitCode, Failure } from "../model/failure.ts";

/** Converts an error of DuckDB or the file system into a failure with a remedy. */
export function asExportFailure(error: unknown, folder: string): unknown {
  if (error instanceof Failure || !(error instanceof Error)) return error;
  const code = "code" in error ? String(error.code) : "";
  if (code === "ENOSPC" || code === "EDQUOT" || /No space left on device|Disk quota/i.test(error.message))
    return outOfSpace(folder, "the disk is full", error);
  if (/^(EACCES|EPERM|EROFS|ENOTDIR|EISDIR|EEXIST|ENAMETOOLONG|ELOOP)$/.test(code))
    return folderRefused(
      `${folder} cannot be written (${code})`,
      "choose a folder that this user may write",
      error,
    );
  return error;
}

export function outOfSpace(folder: string, why: string, cause?: unknown): Failure {
  return new Failure(`no space for the export in ${folder}: ${why}`, {
    code: "disk_full",
    remedy: "free some space, or export to another disk; the previous export is untouched",
    cause,
  });
}

export function folderRefused(message: string, remedy: string, cause?: unknown): Failure {
  return new Failure(message, {
    code: "export_refused",
    remedy,
    exit: exitCode.usage,
    cause,
  });
}

export function exportStopped(folder: string): Failure {
  return new Failure(`the export to ${folder} was stopped before it was complete`, {
    family: "retry",
    code: "stopped",
    remedy: "start it again; the previous export is untouched",
  });
}

export function tableContended(place: string): Failure {
  return new Failure(`another program keeps writing to the table log ${place}`, {
    code: "export_elsewhere",
    remedy: "stop it: only mds-sync may write to an exported table",
  });
}
