import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection, Statement } from "../sqlite/connection.ts";
import type { HighWaterMarks } from "./high-water-marks.ts";
import type { KeyDictionary } from "./key-dictionary.ts";

interface FilledRange extends TimeRange {
  readonly rows: number;
}

/** An open write transaction. Every write needs one; it rejects statements after its end. */
export class Transaction {
  /** The writer's clock at the start of the transaction, stored as `changed_at`, `seen_at` and `received_at`. */
  readonly now: Micros;
  readonly dictionary: KeyDictionary;
  readonly highWaterMarks: HighWaterMarks;
  readonly #connection: Connection;
  readonly #writtenKeys = new Set<string>();
  readonly #filledRanges = new Map<string, FilledRange>();
  #isOpen = true;

  constructor(
    connection: Connection,
    caches: { dictionary: KeyDictionary; highWaterMarks: HighWaterMarks },
    now: Micros,
  ) {
    this.#connection = connection;
    this.dictionary = caches.dictionary;
    this.highWaterMarks = caches.highWaterMarks;
    this.now = now;
  }

  statement(sql: string): Statement {
    if (!this.#isOpen) throw new Error("the transaction has ended: it accepts no more statements");
    return this.#connection.statement(sql);
  }

  /** Records that this transaction wrote a page of this series, even if no row changed. */
  markWritten(stream: Stream, key: number): void {
    this.#writtenKeys.add(`${stream} ${key}`);
  }

  hasWritten(stream: Stream, key: number): boolean {
    return this.#writtenKeys.has(`${stream} ${key}`);
  }

  /** Records a range of a series that was empty before this transaction wrote these rows. */
  recordFilledRange(stream: Stream, key: number, range: FilledRange): void {
    this.#filledRanges.set(`${stream} ${key}`, range);
  }

  filled(stream: Stream, key: number): FilledRange | undefined {
    return this.#filledRanges.get(`${stream} ${key}`);
  }

  end(): void {
    this.#isOpen = false;
  }
}
