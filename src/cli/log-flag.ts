import { exitCode, Failure } from "../model/failure.ts";
import type { Log } from "../runtime/log.ts";
import type { Talk } from "../telemetry/bounded-talk.ts";
import { createLogger, type LogLevel, logLevels } from "../telemetry/logger.ts";

export const logLevelFlag = "--log-level <level>";
export const logLevelHelp = `how much is said on stderr: ${logLevels.join(", ")}`;

/** The logger for a command: JSON lines, or lines for eyes on a terminal. */
export function readLogger(level: string, stderr: Talk): Log {
  const known = logLevels.find((name): name is LogLevel => name === level);
  if (known === undefined) {
    throw new Failure(`--log-level cannot be ${level}`, {
      family: "operator",
      code: "usage",
      remedy: `give one of ${logLevels.join(", ")}`,
      exit: exitCode.usage,
    });
  }
  return createLogger(known, stderr);
}
