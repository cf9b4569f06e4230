export interface LoggedRequest {
  readonly method: string;
  /** Path and query, as they came; for a websocket, without its token. */
  readonly target: string;
  /** 0 when no answer was sent, or not yet. */
  status: number;
  /** The simulator's clock, milliseconds since 1970. */
  readonly at: number;
}

const MAX_LISTED_REQUESTS = 100_000;

/** What was asked of the simulator: counts of everything, and the latest requests one by one. */
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

  /** How often each path was asked, whatever its query. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

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
