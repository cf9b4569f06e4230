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
