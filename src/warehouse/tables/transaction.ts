import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection, Statement } from "../sqlite/connection.ts";
import type { Frontier } from "./high-water-marks.ts";
import type { Dictionary } from "./key-dictionary.ts";

export interface Filled extends TimeRange {
  readonly rows: number;
}

/** An open write transaction. Everything that writes takes one, and refuses it once it is over. */
export class Transaction {
  /** The moment of the commit by the writer's clock: `changed_at`, `seen_at`, `received_at`. */
  readonly now: Micros;
  readonly dictionary: Dictionary;
  readonly frontier: Frontier;
  readonly #connection: Connection;
  readonly #carried = new Set<string>();
  readonly #filled = new Map<string, Filled>();
  #open = true;

  constructor(connection: Connection, memory: { dictionary: Dictionary; frontier: Frontier }, now: Micros) {
    this.#connection = connection;
    this.dictionary = memory.dictionary;
    this.frontier = memory.frontier;
    this.now = now;
  }

  statement(sql: string): Statement {
    if (!this.#open) throw new Error("the transaction is over: nothing more can be written in it");
    return this.#connection.statement(sql);
  }

  /** Notes that the rows of a page of this series stand in this transaction, whether or not they changed anything. */
  carry(stream: Stream, key: number): void {
    this.#carried.add(`${stream} ${key}`);
  }

  carries(stream: Stream, key: number): boolean {
    return this.#carried.has(`${stream} ${key}`);
  }

  /** Notes that a stretch of a series held nothing before this transaction put these rows there. */
  noteFilled(stream: Stream, key: number, filled: Filled): void {
    this.#filled.set(`${stream} ${key}`, filled);
  }

  filled(stream: Stream, key: number): Filled | undefined {
    return this.#filled.get(`${stream} ${key}`);
  }

  end(): void {
    this.#open = false;
  }
}
