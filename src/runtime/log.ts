type Fields = Record<string, unknown>;

/** What the rooms need of a logger: a constant message, and fields that carry what varies. pino fits as it is. */
export interface Log {
  debug(fields: Fields, message: string): void;
  info(fields: Fields, message: string): void;
  warn(fields: Fields, message: string): void;
  error(fields: Fields, message: string): void;
}

const nothing = () => {};
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Something said to a log, in a form that crosses threads. */
export interface LogLine {
  readonly level: keyof Log;
  readonly fields: Fields;
  readonly message: string;
}

/** For those who have no log of their own: what they say is kept, to be said again where there is one. */
export function keepLines(lines: LogLine[]): Log {
  const keep = (level: keyof Log) => (fields: Fields, message: string) =>
    void lines.push({ level, fields, message });
  return { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
}
