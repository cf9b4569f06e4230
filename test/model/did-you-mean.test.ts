import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findClosestWord } from "../../src/model/did-you-mean.ts";

/** Replaces the letters at the first `count` positions by letters that no word has. */
const blur = (word: string, count: number) => "#".repeat(count) + word.slice(count);

const word = fc.stringMatching(/^[a-e]{6,12}$/);
const oneEdit = fc.tuple(word, fc.nat(), fc.constantFrom("insert", "delete", "replace", "swap"));

/** A typing error at a random place. */
function misspell([text, place, edit]: [string, number, string]): string {
  const at = place % (text.length - 1);
  const [before, letter, next, after] = [text.slice(0, at), text[at], text[at + 1], text.slice(at + 2)];
  if (edit === "insert") return `${before}x${letter}${next}${after}`;
  if (edit === "delete") return `${before}${next}${after}`;
  if (edit === "replace") return `${before}x${next}${after}`;
  return `${before}${next}${letter}${after}`;
}

describe("findClosestWord", () => {
  it.each([
    ["concurency", "concurrency"],
    ["BASEURL", "baseUrl"],
    ["prot", "port"],
    ["qqqq", undefined],
    ["", undefined],
  ])("finds for %s: %s", (typed, closest) => {
    expect(findClosestWord(typed, ["concurrency", "baseUrl", "port", "host"])).toBe(closest);
  });

  it("prefers the word with one typing error to any with two", () => {
    fc.assert(
      fc.property(oneEdit, (edit) => {
        const typed = misspell(edit);
        const [intended] = edit;
        for (const known of [
          [blur(typed, 2), intended],
          [intended, blur(typed, 2)],
          [`${typed}##`, intended],
          [intended, typed.slice(2)],
        ])
          expect(findClosestWord(typed, known)).toBe(intended);
      }),
      { numRuns: 500 },
    );
  });
});
