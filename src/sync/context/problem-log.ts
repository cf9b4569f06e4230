import { Failure } from "../../model/failure.ts";
import { type Stream, streamOfEndpoint, streams } from "../../model/streams.ts";
import type { ParkedEndpoint } from "../../service/auth/parking.ts";
import type { StreamHealth } from "../../warehouse/rows/stream-stats.ts";
import { type Problem, problemText } from "./context.ts";

const kindOf = ({ stream, code }: Problem) => `${stream} ${code}`;

/** Collects the problems of many keys. Reports one problem per kind, and only when one of those changes. */
export class ProblemLog {
  readonly #onChange: (problems: readonly Problem[]) => void;
  readonly #problems = new Map<string, Problem>();
  /** The kinds that were reported last, each with the key of its problem. */
  #reported = "";

  constructor(onChange: (problems: readonly Problem[]) => void) {
    this.#onChange = onChange;
  }

  report(key: string, problem: Problem): void {
    const known = this.#problems.get(key);
    // With another problem, the key stands behind the others of that kind.
    if (known && kindOf(known) !== kindOf(problem)) this.#problems.delete(key);
    this.#problems.set(key, problem);
    this.#reportChange();
  }

  /** The key works again. */
  clear(key: string): void {
    if (this.#problems.delete(key)) this.#reportChange();
  }

  /** Clears all keys but these, because nothing requests the others any more. */
  retainOnly(keys: readonly string[]): void {
    const retained = new Set(keys);
    for (const key of this.#problems.keys()) if (!retained.has(key)) this.#problems.delete(key);
    this.#reportChange();
  }

  #reportChange(): void {
    const byKind = Map.groupBy(this.#problems, ([, problem]) => kindOf(problem));
    const firsts = [...byKind.values()].flatMap((problems) => problems.slice(0, 1));
    const reported = firsts.map(([key, problem]) => `${kindOf(problem)} ${key}`).join("\n");
    if (reported === this.#reported) return;
    this.#reported = reported;
    this.#onChange(firsts.map(([, problem]) => problem));
  }
}

/** The stream that is affected when a part of the daemon fails as a whole. */
const streamByPart: Readonly<Record<string, Stream>> = {
  "exchange tickers": "exchange_ticks",
  "market caps": "market_caps",
  "derivative contracts": "derivative_contracts",
  derivatives: "derivative_ticks",
  lookups: "assets",
  gaps: "index_ticks",
  heads: "index_ticks",
};

/** Last error and missing scopes of each stream while a daemon runs, as `status` shows them. */
export class StreamErrors {
  readonly #problems = new Map<string, readonly Problem[]>();
  readonly #failures = new Map<Stream, string>();
  #lastStatesJson = "";

  setProblems(part: string, problems: readonly Problem[]): void {
    this.#problems.set(part, problems);
    const stream = streamByPart[part];
    if (stream) this.#failures.delete(stream);
  }

  setFailure(part: string, error: unknown): void {
    const stream = streamByPart[part];
    const message = error instanceof Failure ? error.summary : String(error);
    if (stream) this.#failures.set(stream, message);
  }

  /** Call after records of the stream were stored: the part that failed works again. */
  clearFailure(stream: Stream): void {
    this.#failures.delete(stream);
  }

  /** The state of every stream; undefined if no state has changed since the last call. */
  takeChanges(parked: readonly ParkedEndpoint[]): StreamHealth[] | undefined {
    const problems = [...this.#problems.values()].flat();
    const states = streams.map((stream) => {
      const health = toStreamHealth(stream, problems, parked);
      return { ...health, error: health.error ?? this.#failures.get(stream) ?? null };
    });
    const text = JSON.stringify(states);
    if (text === this.#lastStatesJson) return undefined;
    this.#lastStatesJson = text;
    return states;
  }
}

/** The state of one stream: its first problem, and the scopes that its endpoints lack. */
export function toStreamHealth(
  stream: Stream,
  problems: readonly Problem[],
  parked: readonly ParkedEndpoint[],
): StreamHealth {
  const parkedOfStream = parked.filter(({ endpoint }) => streamOfEndpoint(endpoint) === stream);
  const problem = problems.find((each) => each.stream === stream);
  return {
    stream,
    error: problem ? problemText(problem) : null,
    missingScopes: [...new Set(parkedOfStream.flatMap(({ scopes }) => scopes))],
  };
}
