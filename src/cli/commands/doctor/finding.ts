import { type ExitCode, exitCode, Failure } from "../../../model/failure.ts";

/** One thing that was looked at. A warning is for the operator to know; a problem keeps something from working. */
export interface Finding {
  readonly check: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly message: string;
  readonly remedy?: string;
  /** What a problem means for the exit code. */
  readonly exit?: ExitCode;
}

export function ok(check: string, message: string): Finding {
  return { check, verdict: "ok", message };
}

export function warning(check: string, message: string, remedy: string): Finding {
  return { check, verdict: "warning", message, remedy };
}

/** The failure as a problem. What is no Failure is a bug of ours, and stays one. */
export function problem(check: string, error: unknown, usualRemedy?: string): Finding {
  if (!(error instanceof Failure)) throw error;
  const remedy = error.remedy ?? usualRemedy;
  const finding = { check, verdict: "problem", message: error.message, exit: error.exit } as const;
  return remedy === undefined ? finding : { ...finding, remedy };
}

/** What is wrong first makes the rest impossible: settings, then credentials, then the way there, then the scopes. */
const severity: readonly ExitCode[] = [
  exitCode.usage,
  exitCode.credentials,
  exitCode.unexpected,
  exitCode.tryLater,
  exitCode.incomplete,
];

export function worstExit(findings: readonly Finding[]): ExitCode {
  const exits = findings.filter(({ verdict }) => verdict === "problem").map(({ exit }) => exit);
  return severity.find((code) => exits.includes(code)) ?? exitCode.ok;
}
