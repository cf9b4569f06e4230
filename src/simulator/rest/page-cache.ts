import type { Payload } from "./http-types.ts";

export interface KeptPage {
  readonly payload: Payload;
  /** The oldest step that the page, or its look ahead, touched. */
  readonly oldest: number;
  /** Where its last record stands; undefined when it has none. */
  readonly last?: { readonly step: number; readonly rank: number } | undefined;
  readonly rows?: number;
}

/** Rendered pages that can no longer change, least recently asked for out first; bounded by bytes. */
export class PageCache {
  readonly #limitBytes: number;
  readonly #pages = new Map<string, { page: KeptPage; bytes: number }>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get(key: string): KeptPage | undefined {
    const kept = this.#pages.get(key);
    if (!kept) return undefined;
    this.#pages.delete(key);
    this.#pages.set(key, kept);
    return kept.page;
  }

  keep(key: string, page: KeptPage): void {
    this.drop(key);
    // The compressed form may be made later; a quarter on top stands for it.
    const bytes = Math.ceil(page.payload.bytes.length * 1.25) + 500;
    this.#pages.set(key, { page, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#pages.keys()) {
      if (this.#bytes <= this.#limitBytes) break;
      this.drop(oldest);
    }
  }

  drop(key: string): void {
    const kept = this.#pages.get(key);
    if (!kept) return;
    this.#pages.delete(key);
    this.#bytes -= kept.bytes;
  }
}
