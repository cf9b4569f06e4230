import type { Micros } from "../model/instant.ts";
import type { Connection } from "../warehouse/connection.ts";
import { type LatestTick, readLatestTicks } from "../warehouse/latest-ticks.ts";
import { type CoveragePicture, LedgerPicture, type MissingPicture } from "../warehouse/ledger-picture.ts";
import { openReader } from "../warehouse/reader.ts";
import { readStatus, type WarehouseStatus } from "../warehouse/status.ts";

/** What pages ask of the warehouse. */
export interface Answers {
  status: WarehouseStatus;
  /** The heat map, with more rows of the groups that are named. */
  coverage: CoveragePicture;
  missing: MissingPicture;
  latest: readonly LatestTick[];
}

export interface Question<K extends keyof Answers = keyof Answers> {
  readonly id: number;
  readonly path: string;
  readonly ask: K;
  readonly shown: ReadonlyMap<string, number>;
  /** By the service's clock. */
  readonly now: Micros;
  /** Milliseconds that never go back; this thread has no clock of its own. */
  readonly at: number;
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: string };

export const USUAL_ROWS = 8;
const MOST_PARTS = 40;
const TICKS_SHOWN = 8;
const PICTURE_KEPT_MS = 10_000;
const CACHE_KIB = 8 * 1024;

/** Answers from a reader of its own, in a thread of its own. */
export class ReadingsDesk {
  #reader: Connection | undefined;
  #picture: { readonly picture: LedgerPicture; readonly at: number } | undefined;

  answer(question: Question): Answers[keyof Answers] {
    const reader = this.#open(question.path);
    switch (question.ask) {
      case "status":
        return readStatus(reader, question.now);
      case "coverage":
        return this.#draw(reader, question).show({ usual: USUAL_ROWS, byGroup: question.shown });
      case "missing":
        return this.#draw(reader, question).missing(MOST_PARTS);
      case "latest":
        return readLatestTicks(reader, this.#draw(reader, question).bestKnown(TICKS_SHOWN));
    }
  }

  #open(path: string): Connection {
    if (!this.#reader) {
      this.#reader = openReader(path);
      // It reads the same few tables again and again: the usual cache would only take memory from ingest.
      this.#reader.database.pragma(`cache_size = -${CACHE_KIB}`);
    }
    return this.#reader;
  }

  #draw(reader: Connection, { now, at }: Question): LedgerPicture {
    if (!this.#picture || at - this.#picture.at >= PICTURE_KEPT_MS) {
      this.#picture = { picture: new LedgerPicture(reader, now), at };
    }
    return this.#picture.picture;
  }
}
