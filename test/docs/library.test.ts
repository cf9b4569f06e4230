import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findUndocumented, libraryFile, libraryPage } from "../../scripts/library-page.ts";

describe("the page of the library", () => {
  it("equals docs/library.md", () => {
    expect(readFileSync(libraryFile, "utf8"), "run `npm run docs`").toBe(libraryPage());
  });

  it("has a comment for every declaration", () => {
    expect(findUndocumented()).toEqual([]);
  });
});
