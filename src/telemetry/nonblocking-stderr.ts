import type { Writable } from "node:stream";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { finishesWithin } from "../runtime/timeouts.ts";

/** Stderr, or a test's substitute for it. */
export interface TextOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** A few thousand lines. */
const MAX_BUFFERED_CHARS = 1024 * 1024;

/**
 * Writes to stderr without blocking: a hanging reader would block the program, a closed pipe would end it.
 * Drops unread lines and later writes their count; loses no line while the reader keeps up, even in a crash.
 *
 * Pino's sonic-boom cannot replace it: its write blocks a thread, and the process cannot exit before that
 * thread. So a stuck reader would prevent the exit.
 */
export class NonblockingStderr implements TextOutput {
  readonly #stream: Writable & { readonly isTTY?: boolean };
  readonly #maxBufferedChars: number;
  #isFull = false;
  #dropped = 0;

  constructor(stream: Writable & { readonly isTTY?: boolean }, maxBufferedChars = MAX_BUFFERED_CHARS) {
    this.#stream = stream;
    this.#maxBufferedChars = maxBufferedChars;
    // The write callback receives the error too; without this listener it would end the process.
    stream.on("error", () => {});
  }

  get isTTY(): boolean {
    return this.#stream.isTTY === true;
  }

  write(text: string): void {
    // After the first drop, drop everything until the reader has caught up: one gap, and it is marked.
    this.#isFull ||= this.#stream.writableLength + text.length > this.#maxBufferedChars;
    if (this.#isFull) this.#dropped++;
    else this.#send(text, 1);
  }

  /** Waits until the reader has read everything; false after the timeout. */
  async flush(clock: Pick<Clock, "after">, timeoutMs: number): Promise<boolean> {
    if (this.#stream.writableLength === 0) return true;
    const flushed = new Promise<void>((resolve) => this.#stream.write("", () => resolve()));
    return finishesWithin(clock, timeoutMs, flushed);
  }

  #send(text: string, lines: number): void {
    this.#stream.write(text, (error) => {
      if (error) this.#dropped += lines;
      if (this.#stream.writableLength > 0) return;
      this.#isFull = false;
      if (!error) this.#reportDropped();
    });
  }

  #reportDropped(): void {
    const lines = this.#dropped;
    if (lines === 0) return;
    this.#dropped = 0;
    const what = `${lines} lines dropped here: stderr was not read in time`;
    const record = { level: 40, time: new Date(systemClock.now()).toISOString(), msg: what };
    this.#send(this.isTTY ? `mds-sync: ${what}\n` : `${JSON.stringify(record)}\n`, lines);
  }
}
