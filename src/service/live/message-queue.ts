import type { Micros } from "../../model/time.ts";
import type { FeedMessage } from "./subscription-states.ts";

/** When the sockets should pause. At twice as much the queue drops ticks and reports a gap. */
export interface QueueLimits {
  readonly ticks: number;
  readonly bytes: number;
}

/** Per `update` message. A larger transaction would delay the next page. */
export const MAX_BATCH_TICKS = 4_000;

/** A burst of all markets is 6000 ticks of about 250 bytes: three bursts fit before the sockets pause. */
export const DEFAULT_QUEUE_LIMITS: QueueLimits = { ticks: 20_000, bytes: 8 * 2 ** 20 };

type QueuedTicks = { kind: "update"; texts: string[]; bytes: number };
type QueuedGap = { kind: "gap"; from: Micros; to: Micros; dropped: number };
type OtherMessage = Exclude<FeedMessage, { kind: "update" | "gap" }>;

/** Messages from the sockets to the reader: ordered, bounded in count and bytes. Dropped ticks become a `gap`. */
export class MessageQueue {
  readonly #limits: QueueLimits;
  readonly #now: () => Micros;
  readonly #items: (QueuedTicks | QueuedGap | OtherMessage)[] = [];
  #tickCount = 0;
  #tickBytes = 0;
  #lastQueuedTs: Micros | undefined;
  #wakeReader: (() => void) | undefined;
  /** Called when the queue has drained to half of the pause limits. */
  onDrained: () => void = () => {};

  constructor(limits: QueueLimits, now: () => Micros) {
    this.#limits = limits;
    this.#now = now;
  }

  get shouldPause(): boolean {
    return this.#tickCount >= this.#limits.ticks || this.#tickBytes >= this.#limits.bytes;
  }

  push(message: OtherMessage): void {
    this.#items.push(message);
    this.wake();
  }

  pushTick(text: string): void {
    const { ticks, bytes } = this.#limits;
    const now = this.#now();
    const last = this.#items.at(-1);
    const gap = last?.kind === "gap" ? last : undefined;
    // The gap ends at the first tick that fits again: before it, ticks may be missing.
    if (gap) gap.to = now;
    if (this.#tickCount >= 2 * ticks || this.#tickBytes + text.length > 2 * bytes) {
      if (gap) gap.dropped++;
      else this.#items.push({ kind: "gap", from: this.#lastQueuedTs ?? now, to: now, dropped: 1 });
    } else {
      this.#lastQueuedTs = now;
      this.#tickCount++;
      this.#tickBytes += text.length;
      if (last?.kind === "update" && last.texts.length < MAX_BATCH_TICKS) {
        last.texts.push(text);
        last.bytes += text.length;
      } else this.#items.push({ kind: "update", texts: [text], bytes: text.length });
    }
    this.wake();
  }

  take(): FeedMessage | undefined {
    const item = this.#items.shift();
    if (item?.kind !== "update") return item;
    this.#tickCount -= item.texts.length;
    this.#tickBytes -= item.bytes;
    const { ticks, bytes } = this.#limits;
    if (this.#tickCount <= ticks / 2 && this.#tickBytes <= bytes / 2) this.onDrained();
    return { kind: "update", texts: item.texts };
  }

  /** Resolves when the queue has a message or `wake` is called. */
  waitForMessage(): Promise<void> {
    if (this.#items.length > 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wakeReader = resolve;
    });
  }

  /** Ends `waitForMessage`. The feed also calls it when it has ended. */
  wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }
}
