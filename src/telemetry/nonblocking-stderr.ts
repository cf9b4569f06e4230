import type { Writable } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { doneWithin } from "../runtime/timeouts.ts";

/** Where the program talks to: stderr, or what stands in for it. */
export interface Talk {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** Characters that may wait for a reader who is slow: some thousand lines. */
const MOST_WAITING = 1024 * 1024;

/**
 * Talk that never keeps the speaker waiting. A pipe whose reader is stuck would halt the whole program, and one whose reader
 * went away would end it: here what nobody takes is dropped, and its count is told once somebody reads again. As long as the
 * reader keeps up every line is out when `write` returns, also right before a crash.
 */
export class BoundedTalk implements Talk {
  readonly #stream: Writable & { readonly isTTY?: boolean };
  readonly #mostWaiting: number;
  #isFull = false;
  #dropped = 0;

  constructor(stream: Writable & { readonly isTTY?: boolean }, mostWaiting = MOST_WAITING) {
    this.#stream = stream;
    this.#mostWaiting = mostWaiting;
    // Told to the callback of the write that met it, too; without this it would end the process.
    stream.on("error", () => {});
  }

  get isTTY(): boolean {
    return this.#stream.isTTY === true;
  }

  write(text: string): void {
    // Once something is dropped, all is until the reader has caught up: what is read has one gap, and its place is told.
    this.#isFull ||= this.#stream.writableLength + text.length > this.#mostWaiting;
    if (this.#isFull) this.#dropped++;
    else this.#pass(text, 1);
  }

  /** Waits for the reader to take what is left; false where that was in vain. */
  async flushed(clock: Pick<Clock, "sleep">, patienceMs: number): Promise<boolean> {
    if (this.#stream.writableLength === 0) return true;
    const out = new Promise<void>((resolve) => this.#stream.write("", () => resolve()));
    return doneWithin(clock, patienceMs, out);
  }

  #pass(text: string, lines: number): void {
    this.#stream.write(text, (error) => {
      if (error) this.#dropped += lines;
      if (this.#stream.writableLength > 0) return;
      this.#isFull = false;
      if (!error) this.#tellDropped();
    });
  }

  #tellDropped(): void {
    const lines = this.#dropped;
    if (lines === 0) return;
    this.#dropped = 0;
    this.#pass(`mds-sync: ${lines} lines were dropped here: nobody read them in time\n`, lines);
  }
}
