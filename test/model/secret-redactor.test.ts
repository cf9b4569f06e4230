import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SecretRedactor } from "../../src/model/secret-redactor.ts";

const token = 'eyJhbGci.a+b/c="\\.Zürich-0123';
const redactor = new SecretRedactor("data");
redactor.setSecrets([token, "short", "123456789012", "demo-secret"]);
const redact = (text: string) => Buffer.from(redactor.redactBody(Buffer.from(text))).toString();
const escapeAll = (text: string) =>
  [...text].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

describe("H13: a body", () => {
  it.each([
    ["plain", JSON.stringify(token)],
    ["with slashes escaped", JSON.stringify(token).replaceAll("/", "\\/")],
    ["with all characters escaped", `"${escapeAll(token)}"`],
    ["encoded for a URL", JSON.stringify(encodeURIComponent(token))],
    ["in a longer text", JSON.stringify(`Bearer ${token}, demo-secret.`)],
  ])("that contains a secret %s keeps everything else", (_, json) => {
    const text = `{"a":1.10,"id":"x\\u0041\\n",  "debug":${json},"b":[{"${"k"}":"ü"}]}`;
    const redacted = JSON.parse(redact(text)) as Record<string, unknown>;
    expect(redacted).toMatchObject({ a: 1.1, id: "xA\n", b: [{ k: "ü" }] });
    expect(redacted.debug).toMatch(/^(Bearer )?\[secret\](, \[secret\]\.)?$/);
    expect(redact(text)).toContain('"a":1.10');
  });

  it("without a secret stays the same object, whatever it contains", () => {
    const odd = '{"price":"123456789012.5","a":"short \\u0041\\/"}';
    for (const text of ['{"content":[]}', odd, "\\B \\U0041 \\", ""]) {
      const bytes = Buffer.from(text);
      expect(redactor.redactBody(bytes)).toBe(bytes);
    }
    const cut = Buffer.from('"demo-secret ü').subarray(0, -1);
    expect(redactor.redactBody(cut)).toBe(cut);
  });

  it("stays valid JSON with the same values, for any JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(token, "demo-secret"), (value, secret) => {
        const json = JSON.stringify([value, secret, { [secret]: value }]);
        const redacted = redact(json);
        const [first, second] = JSON.parse(redacted) as unknown[];
        expect(JSON.stringify(first)).toBe(JSON.stringify(value));
        expect(second).toBe("[secret]");
        expect(redacted).not.toContain(JSON.stringify(secret).slice(1, -1));
      }),
    );
  });
});
