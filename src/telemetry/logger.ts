import { type Logger, pino } from "pino";
import { prettyFactory } from "pino-pretty";
import type { TextOutput } from "./nonblocking-stderr.ts";

/** The prefix of a plain line, and the level of the record that it becomes. */
const plainLevels = [
  ["mds-sync: warning: ", "warn"],
  ["mds-sync: ", "error"],
  ["", "info"],
] as const;

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

/** Turns plain lines into log records, so that a program that reads stderr finds only those. The log's own lines pass. */
export function recordPlainLines(stderr: TextOutput): TextOutput {
  const log = createLogger("info", stderr);
  return {
    write(text) {
      const [prefix, level] = plainLevels.find(([start]) => text.startsWith(start)) ?? plainLevels[2];
      if (text.startsWith("{")) stderr.write(text);
      else log[level](text.slice(prefix.length).trimEnd());
    },
  };
}
