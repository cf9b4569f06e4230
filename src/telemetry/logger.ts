import { type Logger, pino } from "pino";
import pretty from "pino-pretty";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/** JSON lines on stderr; on a terminal the same lines, made for eyes. Data goes to stdout, talk to stderr. */
export function createLogger(level: LogLevel, terminal: boolean): Logger {
  const options = { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime };
  return terminal
    ? pino(options, pretty({ destination: 2, sync: true, ignore: "pid,hostname", translateTime: "HH:MM:ss" }))
    : pino(options, pino.destination({ dest: 2, sync: true }));
}
