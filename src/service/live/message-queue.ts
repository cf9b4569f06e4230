import type { Micros } from "../../model/time.ts";
import type { FeedMessage } from "./subscription-states.ts";

export interface QueueLimits {
  /** At either limit the sockets should pause. */
  readonly pauseAtTicks: number;
  readonly pauseAtBytes: number;
  /** At either limit the queue drops ticks and reports a gap. */
  readonly maxTicks: number;
  readonly maxBytes: number;
}

/** Per `update` message. A larger transaction would delay the next page. */
export const MAX_BATCH_TICKS = 4_000;

/** A burst of all markets is 6000 ticks of about 250 bytes: three bursts fit before the sockets pause. */
export const DEFAULT_QUEUE_LIMITS: QueueLimits = {
  pauseAtTicks: 20_000,
  pauseAtBytes: 8 * 2 ** 20,
  maxTicks: 40_000,
  maxBytes: 16 * 2 ** 20,
};

/** Kinds of unexpected messages that are counted separately; the rest share one entry. */
const MAX_UNEXPECTED_KINDS = 100;

type QueuedTicks = { kind: "update"; texts: string[]; bytes: number };
type QueuedGap = { kind: "gap"; from: Micros; to: Micros; reason: "overflow"; dropped: number };
type QueuedUnexpected = { first: Extract<FeedMessage, { kind: "unknown" | "error" }>; count: number };
type QueueItem = QueuedTicks | QueuedGap | QueuedUnexpected | { message: FeedMessage };

/**
 * Messages between the sockets and the reader: ordered, bounded in count and bytes. Dropped ticks become a
 * `gap` message.
 */
export class MessageQueue {
  readonly #limits: QueueLimits;
  readonly #now: () => Micros;
  #items: QueueItem[] = [];
  #head = 0;
  #tickCount = 0;
  #tickBytes = 0;
  #lastQueuedTs: Micros | undefined;
  #unexpected = new Map<string, QueuedUnexpected>();
  #wakeReader: (() => void) | undefined;
  /** Called when the queue has drained to half of the pause limits. */
  onDrained: () => void = () => {};

  constructor(limits: QueueLimits, now: () => Micros) {
    this.#limits = limits;
    this.#now = now;
  }

  get shouldPause(): boolean {
    return this.#tickCount >= this.#limits.pauseAtTicks || this.#tickBytes >= this.#limits.pauseAtBytes;
  }

  push(message: FeedMessage): void {
    this.#append({ message });
  }

  pushTick(text: string): void {
    const { maxTicks, maxBytes } = this.#limits;
    const now = this.#now();
    const last = this.#items.at(-1);
    if (this.#tickCount >= maxTicks || this.#tickBytes + text.length > maxBytes) {
      if (last && "kind" in last && last.kind === "gap") {
        last.to = now;
        last.dropped++;
      } else
        this.#append({
          kind: "gap",
          from: this.#lastQueuedTs ?? now,
          to: now,
          reason: "overflow",
          dropped: 1,
        });
      return;
    }
    // The gap ends at the first tick that fits again: before it, ticks may be missing.
    if (last && "kind" in last && last.kind === "gap") last.to = now;
    this.#lastQueuedTs = now;
    this.#tickCount++;
    this.#tickBytes += text.length;
    if (last && "kind" in last && last.kind === "update" && last.texts.length < MAX_BATCH_TICKS) {
      last.texts.push(text);
      last.bytes += text.length;
    } else this.#append({ kind: "update", texts: [text], bytes: text.length });
  }

  /**
   * Thousands may arrive: messages of one kind share one entry, with their count and the first as a sample.
   */
  pushUnexpected(message: QueuedUnexpected["first"]): void {
    const kind = message.kind === "error" ? `error ${message.code}` : `${message.event} ${message.reason}`;
    const known =
      this.#unexpected.get(kind) ??
      (this.#unexpected.size >= MAX_UNEXPECTED_KINDS ? this.#unexpected.get("") : undefined);
    if (known) {
      known.count += message.count;
      return;
    }
    const item = { first: message, count: message.count };
    this.#unexpected.set(this.#unexpected.size >= MAX_UNEXPECTED_KINDS ? "" : kind, item);
    this.#append(item);
  }

  /** The next message; undefined if the queue is empty. */
  take(): FeedMessage | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#head++;
    if (this.#head === this.#items.length || this.#head >= 256) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    if ("message" in item) return item.message;
    if ("first" in item) {
      for (const [kind, queued] of this.#unexpected) if (queued === item) this.#unexpected.delete(kind);
      return { ...item.first, count: item.count };
    }
    if (item.kind === "gap") return { ...item };
    this.#tickCount -= item.texts.length;
    this.#tickBytes -= item.bytes;
    const { pauseAtTicks, pauseAtBytes } = this.#limits;
    if (this.#tickCount <= pauseAtTicks / 2 && this.#tickBytes <= pauseAtBytes / 2) this.onDrained();
    return { kind: "update", texts: item.texts };
  }

  /** Resolves when the queue has a message or `wake` is called. */
  waitForMessage(): Promise<void> {
    if (this.#items.length > this.#head) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wakeReader = resolve;
    });
  }

  /** Ends `waitForMessage`. The feed also calls it when it has ended. */
  wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }

  #append(item: QueueItem): void {
    this.#items.push(item);
    this.wake();
  }
}
