import type { Cancel, Clock } from "../runtime/clock.ts";
import type { LiveCommit } from "./commit-live.ts";

/** How long the first message of a batch waits for company: with the commit itself well under 100 ms to disk. */
const GATHER_MS = 40;
/** A batch this large is committed at once: a longer transaction would keep the next page waiting. */
const LARGEST_BATCH = 4_000;

/**
 * Gathers websocket messages into batches, one commit each, in order. `push` resolves when its messages are on disk, so
 * that a reader who awaits it is slowed to the speed of the disk.
 */
export class LiveBatches {
  readonly #clock: Clock;
  readonly #commit: (messages: readonly string[], since: number) => Promise<LiveCommit>;
  #gathered: string[] = [];
  #batch: PromiseWithResolvers<void> | undefined;
  #since = 0;
  #cancel: Cancel | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** `commit` is also told when, on the monotonic clock, the first message of the batch came. */
  constructor(clock: Clock, commit: (messages: readonly string[], since: number) => Promise<LiveCommit>) {
    this.#clock = clock;
    this.#commit = commit;
  }

  push(messages: readonly string[]): Promise<void> {
    if (messages.length === 0) return Promise.resolve();
    this.#batch ??= this.#open();
    const { promise } = this.#batch;
    for (const message of messages) this.#gathered.push(message);
    if (this.#gathered.length >= LARGEST_BATCH) this.#close();
    return promise;
  }

  /** Commits what is gathered and waits for all that is under way. */
  async flush(): Promise<void> {
    this.#close();
    await this.#last;
  }

  #open(): PromiseWithResolvers<void> {
    const batch = Promise.withResolvers<void>();
    // Whoever pushed and went away must not turn a failed commit into an unhandled rejection.
    batch.promise.catch(() => {});
    this.#since = this.#clock.monotonic();
    this.#cancel = this.#clock.after(GATHER_MS, () => this.#close());
    return batch;
  }

  #close(): void {
    const batch = this.#batch;
    if (!batch) return;
    this.#cancel?.();
    const messages = this.#gathered;
    this.#gathered = [];
    this.#batch = undefined;
    this.#last = this.#commit(messages, this.#since).then(() => batch.resolve(), batch.reject);
  }
}
