import { isUtf8 } from "node:buffer";

/** Enough for the last few rotations: a token per day for each of two audiences, and the client secret. */
const MAX_SECRETS = 16;
const REPLACEMENT = "[secret]";

/** A short secret may be an ordinary word; in data, one of digits alone may be a figure, which must not be falsified. */
const isUsable = {
  messages: (secret: string) => secret.length >= 6,
  data: (secret: string) => secret.length >= 10 && /[a-z]/i.test(secret),
};

/**
 * Removes the client's secrets from what the service sends before it is logged, reported or stored: a service may echo the
 * token of a request. Costs one search per secret; replaces only where one is found.
 */
export class SecretRedactor {
  readonly #isUsable: (secret: string) => boolean;
  /** A new array after each change. */
  secrets: readonly string[] = [];
  /** Every form in which a text may contain a secret, the longest first. */
  #forms: readonly string[] = [];
  #needles: readonly Buffer[] = [];

  constructor(purpose: keyof typeof isUsable) {
    this.#isUsable = isUsable[purpose];
  }

  addSecret(secret: string): void {
    if (this.secrets.at(-1) !== secret && this.#isUsable(secret))
      this.setSecrets([...this.secrets.filter((each) => each !== secret), secret].slice(-MAX_SECRETS));
  }

  setSecrets(secrets: readonly string[]): void {
    this.secrets = secrets.filter(this.#isUsable);
    const forms = this.secrets.flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
    ]);
    this.#forms = [...new Set(forms)].sort((a, b) => b.length - a.length);
    this.#needles = this.#forms.map((form) => Buffer.from(form));
  }

  /** The same bytes if they contain no secret. */
  redactBody(bytes: Uint8Array): Uint8Array {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const mayContain = this.#needles.some((needle) => buffer.includes(needle)) || buffer.includes("\\");
    // A body that is not UTF-8 is never stored.
    if (this.#needles.length === 0 || !mayContain || !isUtf8(bytes)) return bytes;
    const text = buffer.toString();
    const redacted = this.redact(text);
    return redacted === text ? bytes : Buffer.from(redacted);
  }

  /** The same text if it contains no secret; JSON keeps its structure. */
  redact(text: string): string {
    if (this.#containsSecret(text)) return this.#replaceSecrets(text);
    if (this.#forms.length === 0 || !text.includes("\\")) return text;
    const plain = unescapePlain(text);
    return this.#containsSecret(plain) ? this.#replaceSecrets(plain) : text;
  }

  #containsSecret(text: string): boolean {
    for (const form of this.#forms) if (text.includes(form)) return true;
    return false;
  }

  #replaceSecrets(json: string): string {
    let text = unescapePlain(json);
    for (const form of this.#forms) text = text.replaceAll(form, REPLACEMENT);
    return text;
  }
}

/** The same JSON without needless escapes: `\u0041` and `\/` hide what they stand for. */
function unescapePlain(json: string): string {
  return json.replaceAll(/\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])/g, (match) =>
    JSON.stringify(JSON.parse(`"${match}"`)).slice(1, -1),
  );
}
