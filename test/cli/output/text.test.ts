import { describe, expect, it } from "vitest";
import {
  formatAge,
  formatBytes,
  formatDuration,
  formatShortCount,
  formatTable,
  NO_BREAK_SPACE,
  wrapText,
} from "../../../src/cli/output/text.ts";

describe("the texts of a report", () => {
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
  ])("show %d seconds as the duration %s and as the age %s", (seconds, duration, age) => {
    expect([formatDuration(seconds), formatAge(seconds)]).toEqual([duration, age]);
  });

  it.each([
    [0, "0 B"],
    [1_023, "1023 B"],
    [2 ** 20, "1 MiB"],
    [9.99 * 2 ** 20, "9.9 MiB"],
    [900.9 * 2 ** 20, "900 MiB"],
    [1.5 * 2 ** 40, "1.5 TiB"],
  ])("show %d bytes as %s, rounded down", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it.each([
    [0, "0"],
    [9_999, "9999"],
    [36_000, "36k"],
    [999_999, "999k"],
    [1_290_000, "1.2M"],
    [50_199_999, "50M"],
    [999_999_999, "999M"],
    [1_290_000_000, "1.2G"],
    [20_000_000_000, "20G"],
  ])("show the count %d as %s", (count, text) => {
    expect(formatShortCount(count)).toBe(text);
  });

  it("break lines between words, never inside a timestamp or a long word", () => {
    const timestamp = `2026-03-01${NO_BREAK_SPACE}12:00:00`;
    const text = wrapText(`${"word ".repeat(12)}until ${timestamp} and ${"x".repeat(90)} end`, "note  ");
    expect(text.split("\n")).toEqual([
      `note  ${"word ".repeat(12)}until`,
      "      2026-03-01 12:00:00 and",
      `      ${"x".repeat(90)}`,
      "      end",
    ]);
  });

  it("are aligned in columns", () => {
    const rows = [
      ["a", "1", ""],
      ["long", "22", "x"],
    ];
    expect(formatTable(rows, ["left", "right", "left"], [0, 3])).toBe("a       1\nlong   22  x");
  });
});
