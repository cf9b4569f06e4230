import { describe, expect, it } from "vitest";
import {
  ageText,
  briefCount,
  countText,
  durationText,
  FIXED_BLANK,
  textTable,
  wrapped,
} from "../../../src/cli/output/text.ts";

describe("the words of a report", () => {
  it.each([
    [0, "0s", "0s"],
    [59.9, "59s", "59s"],
    [60, "1m", "1m"],
    [3_599, "59m 59s", "59m"],
    [86_399, "23h 59m", "23h"],
    [90_000, "1d 1h", "1d"],
    [86_460, "1d", "1d"],
    [200 * 86_400 + 7_200, "200d", "200d"],
    [-5, "0s", "0s"],
  ])("say %d seconds as %s, and as an age %s", (seconds, duration, age) => {
    expect([durationText(seconds), ageText(seconds)]).toEqual([duration, age]);
  });

  it.each([
    [0, "0", "0"],
    [9_999, "9,999", "9999"],
    [36_000, "36,000", "36k"],
    [999_999, "999,999", "999k"],
    [1_290_000, "1.2M", "1.2M"],
    [50_199_999, "50.1M", "50M"],
    [999_999_999, "999.9M", "999M"],
    [20_000_000_000, "20.0G", "20000M"],
  ])("count %d as %s, and where there is little room as %s", (count, usual, brief) => {
    expect([countText(count), briefCount(count)]).toEqual([usual, brief]);
  });

  it("break lines between words, never inside a moment, and leave a word alone that is too long", () => {
    const moment = `2026-03-01${FIXED_BLANK}12:00:00`;
    const text = wrapped(`${"word ".repeat(12)}until ${moment} and ${"x".repeat(90)} end`, "note  ");
    expect(text.split("\n")).toEqual([
      `note  ${"word ".repeat(12)}until`,
      "      2026-03-01 12:00:00 and",
      `      ${"x".repeat(90)}`,
      "      end",
    ]);
  });

  it("stand in columns", () => {
    const rows = [
      ["a", "1", ""],
      ["long", "22", "x"],
    ];
    expect(textTable(rows, ["left", "right", "left"], [0, 3])).toBe("a       1\nlong   22  x");
  });
});
