import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findUndocumented, libraryFile, libraryPage } from "./library-page.ts";

describe("the page of the library", () => {
  it("equals docs/library.md", () => {
    expect(readFileSync(libraryFile, "utf8"), "run `node test/docs/library-page.ts`").toBe(libraryPage());
  });

  it("has a comment for every declaration", () => {
    expect(findUndocumented()).toEqual([]);
  });
});
