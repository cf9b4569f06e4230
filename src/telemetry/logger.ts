import { type Logger, pino } from "pino";
import { prettyFactory } from "pino-pretty";
import type { Talk } from "./nonblocking-stderr.ts";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * JSON lines on stderr; on a terminal the same lines, made for eyes. Data goes to stdout, talk to stderr: the log and what
 * else is said go the same way, so that they stand in the order in which they were said.
 */
export function createLogger(level: LogLevel, stderr: Talk): Logger {
  const options = { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime };
  if (stderr.isTTY !== true) return pino(options, stderr);
  const pretty = prettyFactory({ ignore: "pid,hostname", translateTime: "HH:MM:ss" });
  return pino(options, { write: (line: string) => void stderr.write(pretty(line)) });
}
