import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/faults.md"), "utf8");

const sections = page.split(/^## /m).slice(1);
const rows = sections.flatMap((section) =>
  [...section.matchAll(/^\| ([A-Z]\d+) \|.*$/gm)].map(([line, id = ""]) => ({
    id,
    cells: line.split("|").slice(1, -1),
    files: [...line.matchAll(/\]\(\.\.\/(test\/[^)]+)\)/g)].map(([, file = ""]) => file),
  })),
);

/** A title, or the first cell of a table of cases: a string that begins with ids and a colon. */
const titlePattern = /["'`]([A-Z]\d{1,2}(?:(?:, | and )[A-Z]\d{1,2})*): /g;
/** The ids that test titles begin with, by file. */
const idsByFile = new Map(
  readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => {
      const text = readFileSync(join(root, "test", file), "utf8");
      const ids = [...text.matchAll(titlePattern)].flatMap(([, list = ""]) => list.split(/, | and /));
      return [`test/${file}`, new Set(ids)];
    }),
);

describe("docs/faults.md", () => {
  it("numbers the rows of each section from one, without a gap", () => {
    const expected = sections.flatMap((section) =>
      [...section.matchAll(/^\| [A-Z]\d+ \|/gm)].map((_, index) => `${section[0]}${index + 1}`),
    );
    expect(rows.map(({ id }) => id)).toEqual(expected);
    expect(sections.map(([letter]) => letter).join("")).toBe("ABCDEFGHIJ");
  });

  it("has four filled cells in every row", () => {
    const incomplete = rows.filter(({ cells }) => cells.length !== 4 || cells.some((cell) => !cell.trim()));
    expect(incomplete).toEqual([]);
  });

  it("links only test files that have a title with the id of the row", () => {
    const withoutLink = rows.filter(({ files }) => files.length === 0).map(({ id }) => id);
    expect(withoutLink).toEqual([]);
    const wrongLinks = rows.flatMap(({ id, files }) =>
      files.filter((file) => !idsByFile.get(file)?.has(id)).map((file) => `${id}: ${file}`),
    );
    expect(wrongLinks).toEqual([]);
  });

  it("has a row for every id in a test title", () => {
    const documented = new Set(rows.map(({ id }) => id));
    const unknown = [...idsByFile].flatMap(([file, ids]) =>
      [...ids].filter((id) => !documented.has(id)).map((id) => `${id}: ${file}`),
    );
    expect(unknown).toEqual([]);
  });
});
