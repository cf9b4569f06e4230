import { exitCode, Failure } from "../../model/failure.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type Ask, scopeOf } from "../http/request.ts";
import type { AccessToken } from "./access-tokens.ts";
import { probeDelay } from "./token-endpoint.ts";

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

interface Refused {
  readonly refusals: number;
  /** Monotonic: what was under way by then is no new refusal. */
  readonly since: number;
  /** On the boot clock. */
  probeAt: number;
}

/** No such record exists: whoever answers anything but 401 has taken the token. */
const nowhere = "00000000-0000-0000-0000-000000000000";
const lookups = ["/asset/{id}", "/market/{id}"] as const;
/** Endpoints may break together: so many others that have answered are asked before a token is good for nothing. */
const MOST_WITNESSES = 2;

/**
 * Endpoints that answer 401 to a token that others accept: those wait, and are probed ever more rarely, while all else goes
 * on. Without this one broken endpoint would have every token thrown away.
 */
export class RefusedEndpoints {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #refused = new Map<string, Refused>();
  /** What has been answered, the latest last. */
  readonly #answered = new Map<string, Ask>();
  readonly #judged = new WeakMap<AccessToken, Promise<boolean>>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Throws while the endpoint waits; true for the one request that probes it. */
  due(ask: Ask): boolean {
    const refused = this.#refused.get(parkingKey(ask));
    if (!refused) return false;
    const now = this.#clock.boottime();
    if (now < refused.probeAt) throw refusedHere(ask);
    // Moved at once: one caller probes, the others keep failing without a request until it has its answer.
    refused.probeAt = now + probeDelay(refused.refusals, this.#random);
    return true;
  }

  has(ask: Ask): boolean {
    return this.#refused.has(parkingKey(ask));
  }

  /** `startedAt`: of the request that was refused, monotonic. */
  park(ask: Ask, startedAt: number): Failure {
    const known = this.#refused.get(parkingKey(ask));
    if (known && startedAt <= known.since) return refusedHere(ask);
    const refusals = (known?.refusals ?? 0) + 1;
    const probeAt = this.#clock.boottime() + probeDelay(refusals - 1, this.#random);
    this.#refused.set(parkingKey(ask), { refusals, since: this.#clock.monotonic(), probeAt });
    return refusedHere(ask);
  }

  /** Whether a token is good for anything but this endpoint: one that takes it is enough. However many want to know, one asks. */
  isGoodElsewhere(
    token: AccessToken,
    ask: (witness: Ask) => Promise<boolean>,
    refused: Ask,
  ): Promise<boolean> {
    const known = this.#judged.get(token);
    if (known) return known;
    const asking = anyTrue(this.#witnesses(refused), ask);
    this.#judged.set(token, asking);
    // A token that is refused stays so; one that is good now may be revoked, and what could not be found out is asked again.
    const forget = () => this.#judged.delete(token);
    asking.then((isGood) => isGood && forget(), forget);
    return asking;
  }

  answered(ask: Ask): void {
    const key = parkingKey(ask);
    this.#refused.delete(key);
    // A cursor may die meanwhile.
    if (ask.query?.startAfter !== undefined) return;
    this.#answered.delete(key);
    this.#answered.set(key, ask);
  }

  /** Questions to other endpoints: the last ones that were answered, and one that needs nothing but a good token. */
  #witnesses({ endpoint }: Ask): Ask[] {
    const others = new Map<string, Ask>();
    for (const [key, answered] of [...this.#answered].reverse())
      if (answered.endpoint !== endpoint && !this.#refused.has(key) && !others.has(answered.endpoint))
        others.set(answered.endpoint, answered);
    const lookup = endpoint.startsWith("/asset") ? lookups[1] : lookups[0];
    return [...[...others.values()].slice(0, MOST_WITNESSES), { endpoint: lookup, params: { id: nowhere } }];
  }
}

async function anyTrue(witnesses: readonly Ask[], ask: (witness: Ask) => Promise<boolean>): Promise<boolean> {
  for (const witness of witnesses) if (await ask(witness)) return true;
  return false;
}

function refusedHere({ endpoint }: Ask): Failure {
  return new Failure(`${endpoint} refuses the token that the service accepts elsewhere (401)`, {
    family: "operator",
    code: "auth_failed",
    remedy: "ask the service's operator; it is tried again by itself, ever more rarely",
    exit: exitCode.incomplete,
  });
}
