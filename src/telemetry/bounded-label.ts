/** What a label may look like: a template, a code or a name of ours. Opaque ids and tokens are longer or odder. */
const wellFormed = /^[A-Za-z][\w.:/{}-]{0,47}$|^\/[\w./{}-]{0,63}$/;
/** Eight hexadecimal digits and more in a row are an identifier's, not a word's. */
const identifier = /[0-9a-f]{8}|[A-Za-z0-9_-]{40}/i;
const MOST_VALUES = 64;

/**
 * Lets a label take few values only. Each value is a time series of its own for ever: what comes from outside and varies
 * without end would fill the memory of whoever collects, and could show what must stay hidden.
 */
export class BoundedLabel {
  readonly #values = new Set<string>();

  of(value: string): string {
    if (this.#values.has(value)) return value;
    if (this.#values.size >= MOST_VALUES || !wellFormed.test(value) || identifier.test(value)) return "other";
    this.#values.add(value);
    return value;
  }
}
