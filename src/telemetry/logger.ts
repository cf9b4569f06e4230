import { type Logger, pino } from "pino";
import { prettyFactory } from "pino-pretty";
import type { TextOutput } from "./nonblocking-stderr.ts";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * JSON lines on stderr, pretty-printed on a terminal. The log uses the same output as progress and warnings,
 * so that all lines appear in the order in which they were written.
 */
export function createLogger(level: LogLevel, stderr: TextOutput): Logger {
  const options = { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime };
  if (stderr.isTTY !== true) return pino(options, stderr);
  const pretty = prettyFactory({ ignore: "pid,hostname", translateTime: "HH:MM:ss" });
  return pino(options, { write: (line: string) => void stderr.write(pretty(line)) });
}
