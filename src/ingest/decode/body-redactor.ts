import { isUtf8 } from "node:buffer";

/** A shorter secret, or one of digits alone, may be part of ordinary data: redacting it would falsify figures. */
const MIN_SECRET_LENGTH = 10;
const REPLACEMENT = "[secret]";

/**
 * Removes the client's secrets from what the service sends before it is stored: a service may echo the token of a request.
 * Costs one search of a body per secret; replaces only where one is found.
 */
export class BodyRedactor {
  /** Every form in which a JSON text may contain a secret, the longest first. */
  #forms: readonly string[] = [];
  #needles: readonly Buffer[] = [];

  setSecrets(secrets: readonly string[]): void {
    const usable = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH && /[a-z]/i.test(secret));
    const forms = usable.flatMap((secret) => [
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
    // No body that is not UTF-8 is stored.
    if (this.#needles.length === 0 || !mayContain || !isUtf8(bytes)) return bytes;
    const text = buffer.toString();
    const redacted = this.redactText(text);
    return redacted === text ? bytes : Buffer.from(redacted);
  }

  /** The same text if it contains no secret; in any case JSON with the same structure. */
  redactText(json: string): string {
    if (this.#containsSecret(json)) return this.#replaceSecrets(json);
    if (this.#forms.length === 0 || !json.includes("\\")) return json;
    const plain = unescapePlain(json);
    return this.#containsSecret(plain) ? this.#replaceSecrets(plain) : json;
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
  return json.replaceAll(/\\(?:u[0-9a-f]{4}|["\\/bfnrt])/gi, (match) =>
    JSON.stringify(JSON.parse(`"${match}"`)).slice(1, -1),
  );
}
