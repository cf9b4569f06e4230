import type { Skip } from "../ingest/live-steps.ts";
import { MICROS_PER_SECOND, type Micros } from "../model/instant.ts";
import type { Connection } from "../warehouse/connection.ts";
import type { FollowedHead } from "../warehouse/followed-heads.ts";
import { storedCount } from "../warehouse/stored-count.ts";

const MINUTE = 60 * MICROS_PER_SECOND;
/** After so many doubts in vain the hourly look comes first anyway. */
const MOST_IN_VAIN = 7;
/** Kept while REST does not answer: the oldest decides when it is asked, the newest how far it must answer. */
const MOST_KEPT = 8;

/**
 * The doubts about one line: steps between its live ticks that leave room for another. REST decides. A series that ticks
 * less often than the rest raises one with every tick: the more of them are in vain, the longer the next one waits.
 */
export class HeadDoubts {
  #skips: Skip[] = [];
  #inVain = 0;

  add(skip: Skip): void {
    this.#skips.splice(MOST_KEPT - 1, 1, skip);
  }

  get any(): boolean {
    return this.#skips.length > 0;
  }

  /**
   * From when on the oldest doubt is worth a question; undefined: there is none. `askedAt`: when REST was asked last;
   * `since`: what lies before was missed for another reason, and is asked for as such.
   */
  from(head: FollowedHead, askedAt: Micros, since: Micros): Micros | undefined {
    this.#skips = this.#skips.filter(({ after, at }) => at > head.from && after >= since);
    const [oldest] = this.#skips;
    if (!oldest) return undefined;
    return this.#inVain === 0 ? oldest.at : Math.max(oldest.at, askedAt + 2 ** (this.#inVain - 1) * MINUTE);
  }

  /** REST has told all up to `settledTo`: did it know of ticks that had been left out? */
  answer(reader: Connection, { line, from: settledTo }: FollowedHead): void {
    const answered = this.#skips.filter(({ at }) => at <= settledTo);
    this.#skips = this.#skips.filter(({ at }) => at > settledTo);
    if (answered.length === 0) this.#inVain >>= 1;
    else if (answered.some(({ after, at }) => storedCount(reader, line, { from: after + 1, to: at }) > 0))
      this.#inVain = 0;
    else this.#inVain = Math.min(MOST_IN_VAIN, this.#inVain + 1);
  }
}
