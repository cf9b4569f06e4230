import type { Micros } from "../../model/time.ts";
import type { FeedMessage } from "./messages.ts";

export interface QueueLimits {
  /** Ticks in one update, at most. */
  readonly batch: number;
  /** Beyond either of these the sockets are asked to pause. */
  readonly pauseCount: number;
  readonly pauseBytes: number;
  /** Beyond either of these ticks are dropped, and the gap is reported. */
  readonly mostCount: number;
  readonly mostBytes: number;
}

/** A burst of all markets is 6000 ticks of some 250 bytes; three of those may wait before anybody is slowed down. */
export const usualLimits: QueueLimits = {
  batch: 1_000,
  pauseCount: 20_000,
  pauseBytes: 8 * 2 ** 20,
  mostCount: 40_000,
  mostBytes: 16 * 2 ** 20,
};

/** Kinds of noise that are told apart while they wait. */
const MOST_KINDS = 100;

type Update = { kind: "update"; texts: string[]; bytes: number };
type Gap = { kind: "gap"; from: Micros; to: Micros; reason: "overflow"; dropped: number };
type Noise = { noise: Extract<FeedMessage, { kind: "unknown" | "error" }>; count: number };
type Item = Update | Gap | Noise | { message: FeedMessage };

/**
 * What has been heard and not yet been read. It keeps the order, is bounded in every direction, and says so when it
 * could not hold something.
 */
export class FeedQueue {
  readonly #limits: QueueLimits;
  readonly #now: () => Micros;
  #items: Item[] = [];
  #head = 0;
  #count = 0;
  #bytes = 0;
  #lastHeld: Micros | undefined;
  #noise = new Map<string, Noise>();
  #wake: (() => void) | undefined;
  /** Called when the reader has caught up to half of what makes sockets pause. */
  onRelief: () => void = () => {};

  constructor(limits: QueueLimits, now: () => Micros) {
    this.#limits = limits;
    this.#now = now;
  }

  get isPressed(): boolean {
    return this.#count >= this.#limits.pauseCount || this.#bytes >= this.#limits.pauseBytes;
  }

  push(message: FeedMessage): void {
    this.#append({ message });
  }

  tick(text: string): void {
    const { batch, mostCount, mostBytes } = this.#limits;
    const now = this.#now();
    const last = this.#items.at(-1);
    if (this.#count >= mostCount || this.#bytes + text.length > mostBytes) {
      if (last && "kind" in last && last.kind === "gap") {
        last.to = now;
        last.dropped++;
      } else
        this.#append({ kind: "gap", from: this.#lastHeld ?? now, to: now, reason: "overflow", dropped: 1 });
      return;
    }
    // The gap reaches up to the first tick that is held again: in between, nobody knows what was missed.
    if (last && "kind" in last && last.kind === "gap") last.to = now;
    this.#lastHeld = now;
    this.#count++;
    this.#bytes += text.length;
    if (last && "kind" in last && last.kind === "update" && last.texts.length < batch) {
      last.texts.push(text);
      last.bytes += text.length;
    } else this.#append({ kind: "update", texts: [text], bytes: text.length });
  }

  /** Messages that may come by the thousand: those of one kind wait as one, counted, with the first as a sample. */
  noise(message: Noise["noise"]): void {
    const kind = message.kind === "error" ? `error ${message.code}` : `${message.event} ${message.reason}`;
    const known = this.#noise.get(kind) ?? (this.#noise.size >= MOST_KINDS ? this.#noise.get("") : undefined);
    if (known) {
      known.count += message.count;
      return;
    }
    const item = { noise: message, count: message.count };
    this.#noise.set(this.#noise.size >= MOST_KINDS ? "" : kind, item);
    this.#append(item);
  }

  /** The next message, or undefined while there is none. */
  take(): FeedMessage | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#head++;
    if (this.#head === this.#items.length || this.#head >= 256) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    if ("message" in item) return item.message;
    if ("noise" in item) {
      for (const [kind, waiting] of this.#noise) if (waiting === item) this.#noise.delete(kind);
      return { ...item.noise, count: item.count };
    }
    if (item.kind === "gap") return { ...item };
    this.#count -= item.texts.length;
    this.#bytes -= item.bytes;
    const { pauseCount, pauseBytes } = this.#limits;
    if (this.#count <= pauseCount / 2 && this.#bytes <= pauseBytes / 2) this.onRelief();
    return { kind: "update", texts: item.texts };
  }

  /** Resolves as soon as there is something to take. */
  filled(): Promise<void> {
    if (this.#items.length > this.#head) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Wakes the reader although there is nothing: the feed is over. */
  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #append(item: Item): void {
    this.#items.push(item);
    this.wake();
  }
}
