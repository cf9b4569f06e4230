import type { LiveCommitResult } from "../../ingest/commit/live.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";

/** Short enough that a tick is on disk within 100 ms, commit included. */
const MAX_BATCH_DELAY_MS = 40;
/** A larger transaction would delay the next page. */
const MAX_BATCH_SIZE = 4_000;

/** `push` waits while more messages than this are being committed. */
const MAX_UNCOMMITTED = 12_000;

/**
 * Commits websocket messages in batches, in order. Slows the reader down to the speed of the disk when too
 * many are pending.
 */
export class TickBatcher {
  readonly #clock: Clock;
  readonly #commit: (messages: readonly string[], startedAt: number) => Promise<LiveCommitResult>;
  #batch: string[] = [];
  #batchStartedAt = 0;
  #uncommitted = 0;
  #cancelTimer: Cancel | undefined;
  /** Oldest first. */
  readonly #commits: Promise<void>[] = [];
  #failure: { readonly error: unknown } | undefined;

  /** `startedAt`: when the batch's first message arrived, on the monotonic clock. */
  constructor(
    clock: Clock,
    commit: (messages: readonly string[], startedAt: number) => Promise<LiveCommitResult>,
  ) {
    this.#clock = clock;
    this.#commit = commit;
  }

  /** Resolves when there is room for more. Rejects after a failed commit: its messages are not on disk. */
  async push(messages: readonly string[]): Promise<void> {
    if (messages.length > 0 && this.#batch.length === 0) {
      this.#batchStartedAt = this.#clock.monotonic();
      this.#cancelTimer = this.#clock.after(MAX_BATCH_DELAY_MS, () => this.#commitBatch());
    }
    for (const message of messages) this.#batch.push(message);
    if (this.#batch.length >= MAX_BATCH_SIZE) this.#commitBatch();
    while (this.#uncommitted > MAX_UNCOMMITTED) await this.#commits[0];
    if (this.#failure) throw this.#failure.error;
  }

  /** Commits the open batch and waits for all commits. */
  async flush(): Promise<void> {
    this.#commitBatch();
    await Promise.all(this.#commits);
    if (this.#failure) throw this.#failure.error;
  }

  #commitBatch(): void {
    this.#cancelTimer?.();
    const messages = this.#batch;
    if (messages.length === 0) return;
    this.#batch = [];
    this.#uncommitted += messages.length;
    const commit = this.#commit(messages, this.#batchStartedAt)
      .then(
        () => {},
        (error: unknown) => {
          this.#failure ??= { error };
        },
      )
      .finally(() => {
        this.#uncommitted -= messages.length;
        this.#commits.splice(this.#commits.indexOf(commit), 1);
      });
    this.#commits.push(commit);
  }
}
