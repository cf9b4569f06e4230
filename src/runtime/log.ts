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

/** Passes each call on as an entry, for example to another thread. */
export function createForwardingLog(forward: (entry: LogEntry) => void): Log {
  const at = (level: keyof Log) => (fields: LogFields, message: string) =>
    forward({ level, fields, message });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
