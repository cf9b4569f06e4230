export interface FieldError {
  readonly object: string;
  readonly field: string;
  readonly rejectedValue: string;
  readonly message: string;
}

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_ALLOWED",
  409: "CONFLICT",
  429: "TOO_MANY_REQUESTS",
  500: "INTERNAL_SERVER_ERROR",
  502: "BAD_GATEWAY",
  503: "SERVICE_UNAVAILABLE",
  504: "GATEWAY_TIMEOUT",
};

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
  return JSON.stringify({ status: STATUS_NAMES[status] ?? "ERROR", timestamp, message, errors });
}
