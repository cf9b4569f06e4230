import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { formatDuration } from "../../src/cli/output/text.ts";
import { MICROS_PER_SECOND } from "../../src/model/time.ts";
import { type AbsentEntries, countAbsences, onlyAbsent, repetitionTable } from "../../src/rule/repetition.ts";

it("what must be repeated is printed by docs/promise.md", () => {
  const cell = (value: number | string, format: (value: number) => string = String) =>
    typeof value === "string" ? value.replace(/^sync\..*/, "`$&`") : value === 0 ? "" : format(value);
  const rows = Object.entries(repetitionTable).map(([what, { answers, over, scope, remembered }]) => {
    const duration = cell(over, (micros) => formatDuration(micros / MICROS_PER_SECOND));
    return `| ${what} | ${scope} | ${cell(answers)} | ${duration} | ${remembered} |`;
  });
  const page = readFileSync(join(import.meta.dirname, "../../docs/promise.md"), "utf8");
  const [, table = ""] = /^## What must be repeated$[^|]*\n((?:\|.*\n)*)/m.exec(page) ?? [];
  expect(table.trimEnd().split("\n")).toEqual([
    "| what | about | equal answers | over | counted |",
    "|---|---|---|---|---|",
    ...rows,
  ]);
});

const required = { answers: 3, over: 100 };

describe("entries that a list lacks", () => {
  /** The answers at these times, each with what it lacks. */
  function count(answers: readonly (readonly [now: number, missing: string])[], max?: number) {
    let pending: readonly AbsentEntries[] = [];
    return answers.map(([now, missing]) => {
      const counted = countAbsences([...missing], pending, required, now, max);
      ({ pending } = counted);
      return counted.accepted.join("");
    });
  }

  it("count one by one, each from its own first absence", () => {
    const answers = [
      [0, "a"],
      [50, "ab"],
      [100, "ab"],
      [150, "b"],
    ] as const;
    expect(count(answers)).toEqual(["", "", "a", "b"]);
  });

  it("begin anew when the list has them", () => {
    const answers = [
      [0, "ab"],
      [50, "a"],
      [100, "ab"],
      [150, "b"],
      [200, "b"],
    ] as const;
    expect(count(answers)).toEqual(["", "", "a", "", "b"]);
  });

  it("are accepted so many at once, the longest absent first", () => {
    const answers = [
      [0, "c"],
      [1, "abc"],
      [100, "abc"],
      [101, "ab"],
      [102, "a"],
    ] as const;
    expect(count(answers, 1)).toEqual(["", "", "c", "a", ""]);
  });

  it("stay pending without an answer that shows them", () => {
    const { pending } = countAbsences(["a", "b"], [], required, 7);
    expect(onlyAbsent(pending, (entry) => entry === "b")).toEqual([
      { subject: ["b"], answers: 1, firstAt: 7, lastAt: 7 },
    ]);
    expect(onlyAbsent(pending, () => false)).toEqual([]);
  });
});
