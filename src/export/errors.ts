import { type ExitCode, errorCode, exitCode, Failure } from "../model/failure.ts";

/** Converts an error of DuckDB or the file system into a failure with a remedy. */
export function asExportFailure(error: unknown, folder: string): unknown {
  if (error instanceof Failure || !(error instanceof Error)) return error;
  const code = errorCode(error);
  if (code === "ENOSPC" || code === "EDQUOT" || /No space left on device|Disk quota/i.test(error.message))
    return outOfSpace(folder, "the disk is full", error);
  if (/^(EACCES|EPERM|EROFS|ENOTDIR|EISDIR|EEXIST|ENAMETOOLONG|ELOOP)$/.test(code))
    return exportRefused(
      `${folder} cannot be written (${code})`,
      "choose a folder that this user may write",
      { cause: error },
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

/** A setting, a right or a file is missing, so that trying again does not help. */
export function exportRefused(
  message: string,
  remedy: string,
  { exit = exitCode.usage, cause }: { exit?: ExitCode; cause?: unknown } = {},
): Failure {
  return new Failure(message, { code: "export_refused", remedy, exit, cause });
}

export function exportStopped(folder: string): Failure {
  return new Failure(`the export to ${folder} was stopped before it was complete`, {
    family: "retry",
    code: "stopped",
    remedy: "start it again; the previous export is untouched",
  });
}

export function bucketUnreachable(url: string, why: string, cause?: unknown): Failure {
  return new Failure(`${url} cannot be reached (${why})`, {
    code: "export_unreachable",
    remedy: "try again later; the previous export is untouched",
    cause,
  });
}

const wrongKeys = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN";

/** What to do about the error codes of S3. */
const bucketRemedies: Readonly<Record<string, readonly [remedy: string, exit: ExitCode]>> = {
  AuthorizationHeaderMalformed: ["set AWS_REGION to the region of the bucket", exitCode.usage],
  ExpiredToken: ["renew the credentials in AWS_SESSION_TOKEN", exitCode.credentials],
  InvalidAccessKeyId: [wrongKeys, exitCode.credentials],
  InvalidToken: [wrongKeys, exitCode.credentials],
  NoSuchBucket: ["create the bucket, or name another one", exitCode.usage],
  PermanentRedirect: ["set AWS_REGION to the region of the bucket", exitCode.usage],
  RequestTimeTooSkewed: ["set the clock of this machine", exitCode.usage],
  SignatureDoesNotMatch: [wrongKeys, exitCode.credentials],
};

const conditionalWrites = "use a store with conditional writes (If-None-Match), as Amazon S3 and MinIO have";

/** Two exports at the same time could overwrite each other's commits there. */
export function overwritesCommits(url: string): Failure {
  return exportRefused(`${url} overwrites objects in spite of If-None-Match`, conditionalWrites);
}

/** The answer may contain the key and what was signed, so only its code is shown. `right`: what the request needs. */
export function toBucketFailure(
  url: string,
  status: number,
  answer: string,
  { right, isConditional }: { readonly right: string; readonly isConditional: boolean },
): Failure {
  const code =
    /<Code>([A-Za-z0-9]{1,60})<\/Code>/.exec(answer)?.[1] ??
    `HTTP ${status}${status < 300 ? " without a result" : ""}`;
  if (status === 501)
    return exportRefused(
      `${url} does not implement ${isConditional ? "If-None-Match" : right} (${code})`,
      isConditional ? conditionalWrites : "use another store, or export to a folder and copy it there",
    );
  if (code === "AccessDenied" || code === "HTTP 403")
    return exportRefused(`${url} refused the request (${code})`, `allow ${right} to these credentials`);
  const isPassing = status < 300 || status === 409 || status === 429 || status >= 500;
  if (isPassing) return bucketUnreachable(url, code);
  const [remedy, exit] = bucketRemedies[code] ?? [
    "check the address, the region and the rights",
    status === 401 || status === 403 ? exitCode.credentials : exitCode.usage,
  ];
  return exportRefused(`${url} refused the request (${code})`, remedy, { exit });
}

/** An export that could not remove what it replaced is complete; the next one tries again. */
export function describeCleanUpFailure(error: unknown, place: string): string {
  const failure = asExportFailure(error, place);
  // The remedy of an unreachable store is about a failed export.
  const why =
    failure instanceof Failure && failure.code === "export_refused" ? failure.summary : String(failure);
  return `the export is complete, but old files stay: ${why}`;
}
