import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readProjectFile, root } from "../support/repository.ts";

const page = readProjectFile("docs/faults.md");
const entries = page.split(/^\*\*(?=[A-Z]\d+\. )/m).slice(1);
const idOf = (entry: string) => entry.slice(0, entry.indexOf("."));

/** A title, or the first cell of a table of cases: a string that begins with ids and a colon. */
const titlePattern = /["'`]([A-Z]\d{1,2}(?:(?:, | and )[A-Z]\d{1,2})*): /g;
/** The ids that test titles begin with. */
const tested = new Set(
  readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .flatMap((file) => [...readProjectFile(`test/${file}`).matchAll(titlePattern)])
    .flatMap(([, list = ""]) => list.split(/, | and /)),
);

describe("docs/faults.md", () => {
  it("has one entry for every fault that a test shows, and no other", () => {
    expect(entries.map(idOf).sort()).toEqual([...tested].sort());
  });
});
