import { type Stream, streamOfEndpoint } from "../../model/streams.ts";
import type { Observation } from "../../service/http/events.ts";
import type { Written } from "../../warehouse/rows/row-writer.ts";

/** What a run did for one stream so far. */
export interface StreamTally {
  /** Rows that were not there before. */
  inserted: number;
  /** Rows that the service has changed since. */
  changed: number;
  /** Rows that the service no longer has. */
  withdrawn: number;
  /** Records that came, new or not. */
  received: number;
  rejected: number;
  requests: number;
  /** Microseconds of series that are to be walked, and that have been. */
  planned: number;
  done: number;
}

/** What one commit of records from REST brought. */
export interface CommitFigures {
  readonly inserted: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly rejected: number;
  readonly withdrawn: number;
  readonly foreign: number;
  /** Why the page settled nothing, or the list took nothing off. */
  readonly alarm?: string | undefined;
}

/** What one commit of a whole list brought. */
export interface LookupFigures {
  readonly added: number;
  readonly changed: number;
  readonly listed: number;
  readonly rejected: number;
  /** Set when so much was missing that the list is taken for the service's mistake. */
  readonly incident: { readonly missing: number; readonly listed: number } | null;
}

/** What a list is called that lacks too much of what is known to be believed. */
export const SHRUNKEN_LIST = "shrunken_list";

/** Counts what a run does, for its progress and its report. */
export class Tally {
  readonly #told: ((stream: Stream, figures: CommitFigures) => void) | undefined;
  readonly #streams = new Map<Stream, StreamTally>();
  /** Requests of the data endpoints that brought a 200, readable or not. */
  answers = 0;

  /** `told`: of every commit, as it happens. */
  constructor(told?: (stream: Stream, figures: CommitFigures) => void) {
    this.#told = told;
  }

  of(stream: Stream): StreamTally {
    let tally = this.#streams.get(stream);
    if (!tally) {
      tally = {
        inserted: 0,
        changed: 0,
        withdrawn: 0,
        received: 0,
        rejected: 0,
        requests: 0,
        planned: 0,
        done: 0,
      };
      this.#streams.set(stream, tally);
    }
    return tally;
  }

  observe(observation: Observation): void {
    if (observation.kind !== "request") return;
    const stream = streamOfEndpoint(observation.endpoint);
    if (stream === undefined) return;
    this.of(stream).requests++;
    if (observation.status === 200) this.answers++;
  }

  wrote(stream: Stream, written: Written, more: Partial<CommitFigures> = {}): void {
    const { inserted, changed, unchanged } = written;
    const { rejected = 0, withdrawn = 0, foreign = 0, alarm } = more;
    const tally = this.of(stream);
    tally.inserted += inserted;
    tally.changed += changed;
    tally.received += inserted + changed + unchanged;
    tally.rejected += rejected;
    tally.withdrawn += withdrawn;
    this.#told?.(stream, { inserted, changed, unchanged, rejected, withdrawn, foreign, alarm });
  }

  /** A lookup was brought in step, or has shrunk beyond belief. */
  listed(stream: Stream, lookup: LookupFigures): void {
    const { added, changed, listed, rejected, incident } = lookup;
    const tally = this.of(stream);
    tally.inserted += added;
    tally.changed += changed;
    tally.received += listed;
    tally.rejected += rejected;
    const unchanged = Math.max(0, listed - added - changed);
    const alarm = incident ? SHRUNKEN_LIST : undefined;
    this.#told?.(stream, { inserted: added, changed, unchanged, rejected, withdrawn: 0, foreign: 0, alarm });
  }
}
