import type { Payload } from "./http-types.ts";

export interface CachedPage {
  readonly payload: Payload;
  /** The oldest step that the page, or its look ahead, touched. */
  readonly oldest: number;
  /** Where its last record stands; undefined when it has none. */
  readonly last?: { readonly step: number; readonly rank: number } | undefined;
  readonly rows?: number;
}

/** Rendered pages that can no longer change, least recently asked for out first; bounded by bytes. */
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

  set(key: string, page: CachedPage): void {
    this.delete(key);
    // The compressed form may be made later; a quarter on top stands for it.
    const bytes = Math.ceil(page.payload.bytes.length * 1.25) + 500;
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
