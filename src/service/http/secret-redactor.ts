/** Shorter texts would blot out ordinary words. */
const SHORTEST = 6;
/** The secrets of the last few rotations: two audiences, a token a day each, and the client secret. */
const REMEMBERED = 16;

/** Knows the secrets in use and takes them out of any text that the service wrote and that we repeat. */
export class Concealment {
  readonly #secrets = new Set<string>();

  conceal(text: string): void {
    if (text.length < SHORTEST) return;
    this.#secrets.delete(text);
    this.#secrets.add(text);
    const [oldest] = this.#secrets;
    if (this.#secrets.size > REMEMBERED && oldest !== undefined) this.#secrets.delete(oldest);
  }

  clean(text: string): string {
    let cleaned = text;
    for (const secret of this.#secrets) {
      for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
        cleaned = cleaned.replaceAll(form, "[secret]");
      }
    }
    return cleaned;
  }
}
