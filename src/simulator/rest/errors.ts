import { STATUS_CODES } from "node:http";

export interface FieldError {
  readonly object: string;
  readonly field: string;
  readonly rejectedValue: string;
  readonly message: string;
}

/** Thrown by a handler: the server responds with this status and an error body. */
export class HttpError extends Error {
  readonly status: number;
  readonly errors: readonly FieldError[];

  constructor(status: number, message: string, errors: readonly FieldError[] = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

export function validationError(
  object: string,
  field: string,
  rejectedValue: string,
  message: string,
): HttpError {
  return new HttpError(400, "Validation error", [{ object, field, rejectedValue, message }]);
}

export function errorBody(
  status: number,
  message: string,
  timestamp: string,
  errors: readonly FieldError[] = [],
) {
  // 404: NOT_FOUND
  const name = STATUS_CODES[status]?.toUpperCase().replaceAll(" ", "_") ?? "ERROR";
  return JSON.stringify({ status: name, timestamp, message, errors });
}
