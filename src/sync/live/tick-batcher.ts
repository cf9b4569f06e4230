import type { LiveCommit } from "../../ingest/commit/live.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";

/** How long the first message of a batch waits for company: with the commit itself well under 100 ms to disk. */
const GATHER_MS = 40;
/** A batch this large is committed at once: a longer transaction would keep the next page waiting. */
const LARGEST_BATCH = 4_000;

/** Messages on their way to the disk, at most: whoever brings more waits. */
const MOST_UNDER_WAY = 12_000;

/**
 * Gathers websocket messages into batches, one commit each, in order. Up to a limit the reader goes on reading while
 * they are written; beyond it, he is slowed to the speed of the disk.
 */
export class LiveBatches {
  readonly #clock: Clock;
  readonly #commit: (messages: readonly string[], since: number) => Promise<LiveCommit>;
  #gathered: string[] = [];
  #since = 0;
  #underWay = 0;
  #cancel: Cancel | undefined;
  /** Oldest first. */
  readonly #commits: Promise<void>[] = [];
  #failure: { readonly error: unknown } | undefined;

  /** `commit` is also told when, on the monotonic clock, the first message of the batch came. */
  constructor(clock: Clock, commit: (messages: readonly string[], since: number) => Promise<LiveCommit>) {
    this.#clock = clock;
    this.#commit = commit;
  }

  /** Resolves when there is room for more. Rejects once a commit has failed: what it carried is not on disk. */
  async push(messages: readonly string[]): Promise<void> {
    if (messages.length > 0 && this.#gathered.length === 0) {
      this.#since = this.#clock.monotonic();
      this.#cancel = this.#clock.after(GATHER_MS, () => this.#close());
    }
    for (const message of messages) this.#gathered.push(message);
    if (this.#gathered.length >= LARGEST_BATCH) this.#close();
    while (this.#underWay > MOST_UNDER_WAY) await this.#commits[0];
    if (this.#failure) throw this.#failure.error;
  }

  /** Commits what is gathered and waits for all that is under way. */
  async flush(): Promise<void> {
    this.#close();
    await Promise.all(this.#commits);
    if (this.#failure) throw this.#failure.error;
  }

  #close(): void {
    this.#cancel?.();
    const messages = this.#gathered;
    if (messages.length === 0) return;
    this.#gathered = [];
    this.#underWay += messages.length;
    const commit = this.#commit(messages, this.#since)
      .then(
        () => {},
        (error: unknown) => {
          this.#failure ??= { error };
        },
      )
      .finally(() => {
        this.#underWay -= messages.length;
        this.#commits.splice(this.#commits.indexOf(commit), 1);
      });
    this.#commits.push(commit);
  }
}
