import { STATUS_CODES } from "node:http";

/** One entry of `errors` in the error body of the specification. */
export interface ParamError {
  readonly object: string;
  readonly field: string;
  readonly rejectedValue: string;
  readonly message: string;
}

/** A request that is answered with an error body. */
export class ServeError extends Error {
  readonly status: number;
  readonly errors: readonly ParamError[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    { errors = [], headers = {} }: { errors?: readonly ParamError[]; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.status = status;
    this.errors = errors;
    this.headers = headers;
  }

  toBody(nowMs: number): string {
    return JSON.stringify({
      // 404: NOT_FOUND
      status: STATUS_CODES[this.status]?.toUpperCase().replaceAll(" ", "_") ?? "ERROR",
      timestamp: new Date(nowMs).toISOString(),
      message: this.message,
      errors: this.errors,
    });
  }
}
