import { exitCode, Failure } from "../model/failure.ts";

/** What DuckDB or the file system says about the folder, in the terms of the program. */
export function asExportFailure(error: unknown, folder: string): unknown {
  if (error instanceof Failure || !(error instanceof Error)) return error;
  const code = "code" in error ? String(error.code) : "";
  if (code === "ENOSPC" || code === "EDQUOT" || /No space left on device|Disk quota/i.test(error.message))
    return noRoom(folder, "the disk is full", error);
  if (/^(EACCES|EPERM|EROFS|ENOTDIR|EISDIR|EEXIST|ENAMETOOLONG|ELOOP)$/.test(code))
    return unusable(`${folder} cannot be written (${code})`, "give a folder that this user may write", error);
  return error;
}

export function noRoom(folder: string, why: string, cause?: unknown): Failure {
  return new Failure(`no room for the export in ${folder}: ${why}`, {
    family: "retry",
    code: "disk_full",
    remedy: "free some space, or export to another disk; the previous export is untouched",
    cause,
  });
}

export function unusable(message: string, remedy: string, cause?: unknown): Failure {
  return new Failure(message, {
    family: "operator",
    code: "export_refused",
    remedy,
    exit: exitCode.usage,
    cause,
  });
}

export function stopped(folder: string): Failure {
  return new Failure(`the export to ${folder} was stopped before it was whole`, {
    family: "retry",
    code: "stopped",
    remedy: "start it again; the previous export is untouched",
  });
}
