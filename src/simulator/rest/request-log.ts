interface LoggedRequest {
  readonly method: string;
  /** Path and query as received; for a websocket, without its token. */
  readonly target: string;
  /** 0 when no response was sent yet. */
  status: number;
  /** Milliseconds since 1970, by the clock of the simulator. */
  readonly at: number;
}

const MAX_LISTED_REQUESTS = 100_000;

/** Logs the requests to the simulator: counts of all, and a list of the latest. */
export class RequestLog {
  #list: LoggedRequest[] = [];
  #counts = new Map<string, number>();
  #total = 0;

  add(request: LoggedRequest): LoggedRequest {
    this.#total++;
    const path = request.target.split("?", 1)[0] ?? "";
    this.#counts.set(path, (this.#counts.get(path) ?? 0) + 1);
    this.#list.push(request);
    if (this.#list.length > 2 * MAX_LISTED_REQUESTS) this.#list = this.#list.slice(-MAX_LISTED_REQUESTS);
    return request;
  }

  get total(): number {
    return this.#total;
  }

  /** Number of requests to a path, without the query. */
  count(path: string): number {
    return this.#counts.get(path) ?? 0;
  }

  /** The latest requests, oldest first. */
  get list(): readonly LoggedRequest[] {
    return this.#list.slice(-MAX_LISTED_REQUESTS);
  }

  clear(): void {
    this.#list = [];
    this.#counts = new Map();
    this.#total = 0;
  }
}
