import type { Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import { type BarsWanted, type DrawnBars, readBars } from "../warehouse/read/chart-bars.ts";
import { LedgerPicture } from "../warehouse/read/heatmap.ts";
import type { CoveragePicture, MissingPicture, SeriesFound } from "../warehouse/read/heatmap-types.ts";
import { readStatus, type WarehouseStatus } from "../warehouse/read/status.ts";
import { openReader } from "../warehouse/reader.ts";
import { type LatestTick, readLatestTicks } from "../warehouse/rows/row-queries.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";

/** What pages ask of the warehouse. */
export interface Answers {
  status: WarehouseStatus;
  /** The heat map, with more rows of the groups that are named. */
  coverage: CoveragePicture;
  missing: MissingPicture;
  latest: readonly LatestTick[];
  /** Undefined where there is no such index. */
  bars: DrawnBars | undefined;
  /** Indices whose names hold a text, the best known first. */
  series: readonly SeriesFound[];
}

/** What goes with a question. */
export interface Details {
  readonly coverage: ReadonlyMap<string, number>;
  readonly bars: BarsWanted;
  readonly series: string;
}
export type DetailOf<K extends keyof Answers> = K extends keyof Details ? [Details[K]] : [];

export type Question = {
  readonly [K in keyof Answers]: {
    readonly id: number;
    readonly path: string;
    readonly ask: K;
    readonly detail: K extends keyof Details ? Details[K] : undefined;
    /** As the bytes of its JSON, so that the thread that has the network to mind neither copies nor writes it out. */
    readonly inBytes: boolean;
    /** By the service's clock. */
    readonly now: Micros;
    /** Milliseconds that never go back, by the clock of those who ask. */
    readonly at: number;
  };
}[keyof Answers];

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: string };

export const USUAL_ROWS = 8;
const MOST_PARTS = 40;
const TICKS_SHOWN = 8;
const PICTURE_KEPT_MS = 10_000;
const SERIES_FOUND = 12;
/** Bars that take longer are cut short: those who ask for something else wait meanwhile. */
const MOST_BARS_MS = 2_000;

/** Answers from a reader of its own, in a thread of its own. */
export class ReadingsDesk {
  readonly #clock: Pick<Clock, "monotonic">;
  #reader: Connection | undefined;
  #picture: { readonly picture: LedgerPicture; readonly at: number } | undefined;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  answer(question: Question): Answers[keyof Answers] {
    const reader = this.#open(question.path);
    switch (question.ask) {
      case "status":
        return readStatus(reader, question.now);
      case "coverage":
        return this.#draw(reader, question).show({ usual: USUAL_ROWS, byGroup: question.detail });
      case "missing":
        return this.#draw(reader, question).missing(MOST_PARTS);
      case "latest":
        return readLatestTicks(reader, this.#draw(reader, question).bestKnown(TICKS_SHOWN));
      case "bars": {
        const until = this.#clock.monotonic() + MOST_BARS_MS;
        return readBars(reader, question.detail, question.now, () => this.#clock.monotonic() < until);
      }
      case "series":
        return this.#draw(reader, question).find(question.detail, SERIES_FOUND);
    }
  }

  #open(path: string): Connection {
    this.#reader ??= openReader(path, SMALL_CACHE_KIB);
    return this.#reader;
  }

  #draw(reader: Connection, { now, at }: Question): LedgerPicture {
    if (!this.#picture || at - this.#picture.at >= PICTURE_KEPT_MS) {
      this.#picture = { picture: new LedgerPicture(reader, now), at };
    }
    return this.#picture.picture;
  }
}
