import { type ExitCode, exitCode, Failure } from "../../../model/failure.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { TimeoutRunner } from "../../../runtime/timeouts.ts";
import type { ServiceClient } from "../../../service/client/client.ts";

/** How the checks ask: each question has a few seconds. */
export interface Probe {
  readonly clock: Clock;
  readonly runWithTimeout: TimeoutRunner;
}

export interface ServiceProbe extends Probe {
  readonly client: ServiceClient;
}

/** The result of one check. A warning informs the operator; a problem keeps something from working. */
export interface Finding {
  readonly check: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly message: string;
  readonly remedy?: string | undefined;
  /** The exit code of a problem. */
  readonly exit?: ExitCode;
}

export class Check {
  readonly #check: string;

  constructor(check: string) {
    this.#check = check;
  }

  ok(message: string): Finding {
    return { check: this.#check, verdict: "ok", message };
  }

  warning(message: string, remedy: string): Finding {
    return { check: this.#check, verdict: "warning", message, remedy };
  }

  problem(message: string, remedy: string | undefined, exit: ExitCode): Finding {
    return { check: this.#check, verdict: "problem", message, remedy, exit };
  }

  /** Turns a Failure into a problem. Any other error is a bug and is thrown again. */
  failure(error: unknown, defaultRemedy?: string): Finding {
    if (!(error instanceof Failure)) throw error;
    return this.problem(error.message, error.remedy ?? defaultRemedy, error.exit);
  }
}

/** Undefined if the work fails: another check reports why. */
export async function unlessFailed<T>(work: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** The first of these that a problem has is the exit code: wrong settings hide wrong credentials, and so on. */
const EXIT_PRECEDENCE: readonly ExitCode[] = [
  exitCode.usage,
  exitCode.credentials,
  exitCode.unexpected,
  exitCode.tryLater,
  exitCode.incomplete,
];

export function worstExit(findings: readonly Finding[]): ExitCode {
  const exits = findings.filter(({ verdict }) => verdict === "problem").map(({ exit }) => exit);
  return EXIT_PRECEDENCE.find((code) => exits.includes(code)) ?? exitCode.ok;
}
