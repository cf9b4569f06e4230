import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/faults.md"), "utf8");

const sections = page.split(/^## /m).slice(1);
const faults = sections.flatMap((section) =>
  section
    .split(/^### /m)
    .slice(1)
    .map((entry) => {
      const [, shownBy = ""] = entry.split(/^Shown by /m);
      return {
        id: entry.slice(0, entry.indexOf(".")),
        files: [...shownBy.matchAll(/`(test\/[^`]+)`/g)].map(([, file = ""]) => file),
      };
    }),
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
  it("names only test files that have a title with the id of the fault", () => {
    const withoutTest = faults.filter(({ files }) => files.length === 0).map(({ id }) => id);
    expect(withoutTest).toEqual([]);
    const wrong = faults.flatMap(({ id, files }) =>
      files.filter((file) => !idsByFile.get(file)?.has(id)).map((file) => `${id}: ${file}`),
    );
    expect(wrong).toEqual([]);
  });

  it("has an entry for every id in a test title", () => {
    const documented = new Set(faults.map(({ id }) => id));
    const unknown = [...idsByFile].flatMap(([file, ids]) =>
      [...ids].filter((id) => !documented.has(id)).map((id) => `${id}: ${file}`),
    );
    expect(unknown).toEqual([]);
  });
});
