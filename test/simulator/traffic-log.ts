import type { Session } from "../../src/api-server/session.ts";
import type { Clock } from "../../src/runtime/clock.ts";

export interface LoggedRequest {
  readonly method: string;
  /** Path and query as received; for a websocket, without its token. */
  readonly target: string;
  /** 0 when no response was sent yet. */
  status: number;
  /** Milliseconds since 1970, by the clock of the simulator. */
  readonly at: number;
}

/** The requests to the simulator, oldest first. */
export class RequestLog {
  list: LoggedRequest[] = [];

  add(request: LoggedRequest): LoggedRequest {
    this.list.push(request);
    return request;
  }

  get total(): number {
    return this.list.length;
  }

  /** Number of requests to a path, without the query. */
  count(path: string): number {
    return this.list.filter(({ target }) => target.split("?", 1)[0] === path).length;
  }

  clear(): void {
    this.list = [];
  }
}

/** Measures how long clients take to answer a PING with a requestId. */
export class PongLog {
  readonly #clock: Clock;
  /** By session and requestId: when the PING was sent. */
  readonly #sent = new WeakMap<Session, Map<number, number>>();
  readonly #ms: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  sent(session: Session, [message = ""]: readonly string[]): void {
    const [, requestId] = /^\{"event":"PING","requestId":(\d+)/.exec(message) ?? [];
    if (!requestId) return;
    const sent = this.#sent.get(session) ?? new Map();
    this.#sent.set(session, sent.set(Number(requestId), this.#clock.monotonic()));
  }

  answered(session: Session, requestId: unknown): void {
    const at = this.#sent.get(session)?.get(Number(requestId));
    if (at !== undefined) this.#ms.push(this.#clock.monotonic() - at);
  }

  get summary() {
    const sorted = this.#ms.toSorted((a, b) => a - b);
    const at = (fraction: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
    return { answered: sorted.length, p99Ms: at(0.99), worstMs: at(1) };
  }
}
