import { STATUS_CODES } from "node:http";

/** One entry of `errors` in the error body of the specification. */
export interface FieldError {
  readonly object: string;
  readonly field: string;
  readonly rejectedValue: string;
  readonly message: string;
}

/** Thrown by whoever handles a request: it is answered with this status and an error body. */
export class ApiError extends Error {
  readonly status: number;
  readonly errors: readonly FieldError[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    { errors = [], headers = {} }: { errors?: readonly FieldError[]; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.status = status;
    this.errors = errors;
    this.headers = headers;
  }
}

export function errorBody(
  status: number,
  message: string,
  nowMs: number,
  errors: readonly FieldError[] = [],
): string {
  // 404: NOT_FOUND
  const name = STATUS_CODES[status]?.toUpperCase().replaceAll(" ", "_") ?? "ERROR";
  return JSON.stringify({ status: name, timestamp: new Date(nowMs).toISOString(), message, errors });
}
