/** Redacting shorter texts would also remove ordinary words. */
const MIN_SECRET_LENGTH = 6;
/** Enough for the last few rotations: a token per day for each of two audiences, and the client secret. */
const MAX_SECRETS = 16;

/** Removes the client's secrets from every text of the service before the client logs or reports it. */
export class SecretRedactor {
  readonly #secrets = new Set<string>();
  #list: readonly string[] = [];

  /** A new array after each change. */
  get secrets(): readonly string[] {
    return this.#list;
  }

  addSecret(text: string): void {
    if (text.length < MIN_SECRET_LENGTH || this.#list.at(-1) === text) return;
    this.#secrets.delete(text);
    this.#secrets.add(text);
    const [oldest] = this.#secrets;
    if (this.#secrets.size > MAX_SECRETS && oldest !== undefined) this.#secrets.delete(oldest);
    this.#list = [...this.#secrets];
  }

  redact(text: string): string {
    let redacted = text;
    for (const secret of this.#secrets) {
      for (const encoded of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
        redacted = redacted.replaceAll(encoded, "[secret]");
      }
    }
    return redacted;
  }
}
