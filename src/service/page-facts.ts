import type { Micros } from "../model/instant.ts";

/** What the reader of a page tells the walk. */
export interface PageFacts {
  readonly rows: number;
  /** Null, empty and absent are all undefined here. */
  readonly nextId: string | undefined;
  /** Of the asked series' own rows; a foreign row must not end the walk. */
  readonly oldest: Micros | undefined;
  readonly newest: Micros | undefined;
  /** Newest to oldest, as promised. */
  readonly descending: boolean;
}
