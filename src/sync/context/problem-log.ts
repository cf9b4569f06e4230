import type { StreamNote } from "../../ingest/commit/bookkeeping.ts";
import { Failure } from "../../model/failure.ts";
import { type Stream, streamOfEndpoint, streams } from "../../model/streams.ts";
import type { Parked } from "../../service/auth/endpoint-access.ts";
import type { Problem } from "./error-policy.ts";

/**
 * What stands in the way of many lines, told in few words: one problem of each kind, and again only when the kinds
 * change.
 */
export class Complaints {
  readonly #tell: (problems: readonly Problem[]) => void;
  readonly #kinds = new Map<string, Map<string, Problem>>();
  readonly #kindOf = new Map<string, string>();

  constructor(tell: (problems: readonly Problem[]) => void) {
    this.#tell = tell;
  }

  raise(line: string, problem: Problem): void {
    const kind = `${problem.stream} ${problem.code}`;
    if (this.#kindOf.get(line) !== kind) this.settle(line);
    this.#kindOf.set(line, kind);
    const known = this.#kinds.get(kind);
    if (known) known.set(line, problem);
    else {
      this.#kinds.set(kind, new Map([[line, problem]]));
      this.#say();
    }
  }

  /** The line is well. */
  settle(line: string): void {
    const kind = this.#kindOf.get(line);
    if (kind === undefined) return;
    this.#kindOf.delete(line);
    const lines = this.#kinds.get(kind);
    lines?.delete(line);
    if (lines?.size !== 0) return;
    this.#kinds.delete(kind);
    this.#say();
  }

  /** Nobody asks for the other lines any more. */
  keepOnly(lines: readonly string[]): void {
    const kept = new Set(lines);
    for (const line of [...this.#kindOf.keys()]) if (!kept.has(line)) this.settle(line);
  }

  #say(): void {
    this.#tell([...this.#kinds.values()].flatMap((lines) => [...lines.values()].slice(0, 1)));
  }
}

/** Which stream suffers when a part of the daemon fails as a whole. */
const streamsOfParts: Readonly<Record<string, Stream>> = {
  "exchange tickers": "exchange_ticks",
  "market caps": "market_caps",
  "derivative contracts": "derivative_contracts",
  derivatives: "derivative_ticks",
  lookups: "assets",
  holes: "index_ticks",
  heads: "index_ticks",
};

/** How the streams fare while a daemon runs: what `status` shows as their last error and missing scopes. */
export class StreamNotes {
  readonly #problems = new Map<string, readonly Problem[]>();
  readonly #failures = new Map<Stream, string>();
  #written = "";

  /** All that a part of the daemon has to complain about now; what it said before is over. */
  report(part: string, problems: readonly Problem[]): void {
    this.#problems.set(part, problems);
    const stream = streamsOfParts[part];
    if (stream) this.#failures.delete(stream);
  }

  failed(part: string, error: unknown): void {
    const stream = streamsOfParts[part];
    const line = error instanceof Failure ? error.line : String(error);
    if (stream) this.#failures.set(stream, line);
  }

  /** Records of the stream came in: whatever had failed as a whole works again. */
  worked(stream: Stream): void {
    this.#failures.delete(stream);
  }

  /** What is to be written, or undefined if it is written already. */
  take(parked: readonly Parked[]): StreamNote[] | undefined {
    const problems = [...this.#problems.values()].flat();
    const notes = streams.map((stream) => {
      const own = parked.filter(({ endpoint }) => streamOfEndpoint(endpoint) === stream);
      return {
        stream,
        error:
          problems.find((problem) => problem.stream === stream)?.message ??
          this.#failures.get(stream) ??
          null,
        missingScopes: [...new Set(own.flatMap(({ scopes }) => scopes))],
      };
    });
    const text = JSON.stringify(notes);
    if (text === this.#written) return undefined;
    this.#written = text;
    return notes;
  }
}
