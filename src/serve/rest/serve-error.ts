/** One entry of `errors` in the error body of the specification. */
export interface ParamError {
  readonly object: string;
  readonly field: string;
  readonly rejectedValue: string;
  readonly message: string;
}

const statusNames: Readonly<Record<number, string>> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_ALLOWED",
  413: "PAYLOAD_TOO_LARGE",
  421: "MISDIRECTED_REQUEST",
  429: "TOO_MANY_REQUESTS",
  500: "INTERNAL_SERVER_ERROR",
  503: "SERVICE_UNAVAILABLE",
};

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
      status: statusNames[this.status] ?? "ERROR",
      timestamp: new Date(nowMs).toISOString(),
      message: this.message,
      errors: this.errors,
    });
  }
}
