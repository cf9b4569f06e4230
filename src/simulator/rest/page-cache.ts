import type { Payload } from "./http-types.ts";

export interface CachedPage {
  readonly payload: Payload;
  /** The oldest step that was read to render the page. */
  readonly oldest: number;
  /** The position of its last record; undefined when it has none. */
  readonly last?: { readonly step: number; readonly rank: number } | undefined;
  readonly rows?: number;
}

/** An LRU cache of rendered pages that no longer change, bounded by bytes. */
export class PageCache {
  readonly #maxBytes: number;
  readonly #pages = new Map<string, { page: CachedPage; bytes: number }>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#maxBytes = limitBytes;
  }

  get(key: string): CachedPage | undefined {
    const entry = this.#pages.get(key);
    if (!entry) return undefined;
    this.#pages.delete(key);
    this.#pages.set(key, entry);
    return entry.page;
  }

  /** `length`: of its text. */
  set(key: string, page: CachedPage, length: number): void {
    this.delete(key);
    // The compressed form is made later; a quarter of the size accounts for it.
    const bytes = Math.ceil(length * 1.25) + 500;
    this.#pages.set(key, { page, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#pages.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#pages.get(key);
    if (!entry) return;
    this.#pages.delete(key);
    this.#bytes -= entry.bytes;
  }
}
