import type { StreamNote } from "../ingest/commit-notes.ts";
import { Failure } from "../model/failure.ts";
import { type Stream, streams } from "../model/series.ts";
import type { Parked } from "../service/scope-gate.ts";
import { streamOf } from "./tally.ts";
import type { Problem } from "./trouble.ts";

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
      const own = parked.filter(({ endpoint }) => streamOf(endpoint) === stream);
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
