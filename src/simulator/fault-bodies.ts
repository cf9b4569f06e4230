import type { PlainAnswer } from "./fault-answer.ts";
import type { Strike } from "./fault-script.ts";
import { errorBody } from "./refusal.ts";

export function errorAnswer(status: number, message: string, now: number): PlainAnswer {
  return jsonAnswer(status, errorBody(status, message, new Date(now).toISOString()), now);
}

export function jsonAnswer(status: number, json: string, now: number): PlainAnswer {
  const headers = { "content-type": "application/json", date: imfDate(now) };
  return { status, headers, body: Buffer.from(json) };
}

/** The answer as a fault of status, headers or body leaves it; undefined for a word that is none. */
export function mangleAnswer({ line }: Strike, answer: PlainAnswer, now: number): PlainAnswer | undefined {
  const plain = (body: string | Uint8Array, type = "application/json"): PlainAnswer => ({
    status: 200,
    headers: { ...answer.headers, "content-type": type },
    body: Buffer.from(body),
  });
  switch (line.word.word) {
    case "status":
    case "rate-limit": {
      const status = line.word.word === "status" ? line.numberOf("code") : 429;
      const said = errorAnswer(status, "the simulator was told to fail", now);
      const wait = retryAfter(line.textOf("retry-after"), line.numberOf("wait"), now);
      return wait === undefined ? said : { ...said, headers: { ...said.headers, "retry-after": wait } };
    }
    case "redirect":
      return {
        status: line.numberOf("code"),
        headers: { location: line.textOf("location"), date: imfDate(now) },
        body: Buffer.of(),
      };
    case "html":
      return plain(
        "<!doctype html><title>Sign in</title><p>Welcome to the airport's free network.",
        "text/html",
      );
    case "empty-body":
      return plain("");
    case "no-content":
      return { status: 204, headers: answer.headers, body: Buffer.of() };
    case "bom":
      return plain(Buffer.concat([Buffer.from("\uFEFF"), answer.body]));
    case "content-type":
      return { ...answer, headers: { ...answer.headers, "content-type": line.textOf("type") } };
    case "envelope":
      return plain(envelopes[line.textOf("shape")] ?? "{}");
    default:
      return undefined;
  }
}

const envelopes: Record<string, string> = {
  array: "[]",
  string: '"content"',
  number: "42",
  null: "null",
  "no-content": '{"nextId":null}',
  "content-object": '{"content":{}}',
  "content-null": '{"content":null}',
  "content-string": '{"content":"[]"}',
};

export function imfDate(ms: number): string {
  return new Date(ms).toUTCString();
}

export function retryAfter(form: string, wait: number, now: number): string | undefined {
  const then = new Date(now + wait);
  const [weekday = "", day = "", month = "", year = "", time = ""] = then
    .toUTCString()
    .replace(",", "")
    .split(" ");
  switch (form) {
    case "seconds":
      return String(Math.ceil(wait / 1000));
    case "imf":
      return then.toUTCString();
    case "rfc850":
      return `${weekdays[then.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
    case "asctime":
      return `${weekday} ${month} ${String(then.getUTCDate()).padStart(2)} ${time} ${year}`;
    case "past":
      return imfDate(now - wait);
    case "far":
      return imfDate(now + 10 * 365 * 86_400_000);
    case "garbage":
      return "when the moon is full";
    case "negative":
      return "-7";
    case "huge":
      return "1000000000";
    case "exponent":
      return "1e9";
    default:
      return undefined;
  }
}

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
