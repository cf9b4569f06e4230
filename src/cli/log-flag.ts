import type { Log } from "../runtime/log.ts";
import type { Talk } from "../telemetry/bounded-talk.ts";
import { createLogger, type LogLevel, logLevels } from "../telemetry/logger.ts";
import { usageFailure } from "./usage-failure.ts";

export const logLevelFlag = "--log-level <level>";
export const logLevelHelp = `how much is said on stderr: ${logLevels.join(", ")}`;

/** The logger for a command: JSON lines, or lines for eyes on a terminal. */
export function readLogger(level: string, stderr: Talk): Log {
  const known = logLevels.find((name): name is LogLevel => name === level);
  if (known === undefined) {
    throw usageFailure(`--log-level cannot be ${level}`, `give one of ${logLevels.join(", ")}`);
  }
  return createLogger(known, stderr);
}
