import { exitCode, Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Ask, scopeOf } from "./endpoints.ts";

const ASK_AGAIN_MS = 3_600_000;

/** What is not asked for the time being, because the client's profile does not allow it. */
export interface Parked {
  readonly endpoint: string;
  /** Empty where it is not known which scope is missing. */
  readonly scopes: readonly string[];
  /** On the boot clock. */
  readonly since: number;
  readonly askAgainAt: number;
}

/** Requests to one endpoint that need the same scope are parked together, so LX never takes the other indices with it. */
export function parkingKey(ask: Ask): string {
  return `${ask.endpoint} ${scopeOf(ask) ?? ""}`;
}

/** Remembers which scopes are missing, and asks again hourly whether that is still so. */
export class ScopeGate {
  readonly #clock: Clock;
  readonly #parked = new Map<string, Parked>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get parked(): readonly Parked[] {
    return [...this.#parked.values()];
  }

  /** Throws while the request is parked; true if it was, and its hour is over. */
  due(ask: Ask): boolean {
    const parked = this.#parked.get(parkingKey(ask));
    if (parked && this.#clock.boottime() < parked.askAgainAt) throw forbidden(parked);
    return parked !== undefined;
  }

  /** `missing`: what the token lacks, or what a 403 is likely to be about. */
  park(ask: Ask, missing: readonly string[]): Failure {
    const now = this.#clock.boottime();
    const since = this.#parked.get(parkingKey(ask))?.since ?? now;
    const parked = { endpoint: ask.endpoint, scopes: missing, since, askAgainAt: now + ASK_AGAIN_MS };
    this.#parked.set(parkingKey(ask), parked);
    return forbidden(parked);
  }

  granted(ask: Ask): void {
    this.#parked.delete(parkingKey(ask));
  }
}

/** What a token is known to lack for a request. */
export function missingScopes(ask: Ask, scopes: ReadonlySet<string> | undefined): readonly string[] {
  const scope = scopeOf(ask);
  return scope === undefined || !scopes || scopes.has(scope) ? [] : [scope];
}

function forbidden({ endpoint, scopes }: Parked): Failure {
  const what = scopes.length > 0 ? `the scope ${scopes.join(" and ")}` : `access to ${endpoint}`;
  return new Failure(`the service does not allow ${endpoint}: ${what} is missing`, {
    family: "operator",
    code: "forbidden",
    remedy: `have ${what} added to the client's profile; it is asked again hourly`,
    exit: exitCode.incomplete,
  });
}
