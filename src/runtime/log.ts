type LogFields = Record<string, unknown>;

/** The logger interface, which pino satisfies: a constant message, and fields for what varies. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

const noop = () => {};
export const silentLog: Log = { debug: noop, info: noop, warn: noop, error: noop };

/** A log call that can be sent to another thread. */
export interface LogEntry {
  readonly level: keyof Log;
  readonly fields: LogFields;
  readonly message: string;
}

/** For threads without a logger: collects the entries, to be logged by another thread. */
export function createBufferingLog(entries: LogEntry[]): Log {
  const append = (level: keyof Log) => (fields: LogFields, message: string) =>
    void entries.push({ level, fields, message });
  return { debug: append("debug"), info: append("info"), warn: append("warn"), error: append("error") };
}
