import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { findProblems } from "../../scripts/release.ts";

const root = resolve(import.meta.dirname, "../..");

describe("npm run release", () => {
  it("refuses a version without a date, with later changes, or with files that are not committed", () => {
    expect(findProblems("# Changelog\n\n## 0.2.0 (2026-12-01)\n\n- new\n\n## 0.1.0\n", "0.2.0", "")).toEqual(
      [],
    );
    expect(findProblems("## Unreleased\n\n## 0.2.0 (2026-12-01)\n", "0.2.0", "")).toEqual([]);
    expect(findProblems("## Unreleased\n\n- later\n\n## 0.2.0\n", "0.2.0", " M src/a.ts\n")).toEqual([
      'CHANGELOG.md has no heading "0.2.0 (YYYY-MM-DD)"',
      "CHANGELOG.md has changes under Unreleased",
      "these files are not committed:\n M src/a.ts",
    ]);
  });
});

describe("the version", () => {
  it("is the same wherever it stands", () => {
    const read = (file: string) => readFileSync(join(root, file), "utf8");
    const { version } = JSON.parse(read("package.json")) as { version: string };
    const lock = JSON.parse(read("package-lock.json")) as {
      version: string;
      packages: Record<string, { version?: string }>;
    };
    const example = JSON.parse(read("examples/typescript/package.json")) as {
      dependencies: Record<string, string>;
    };
    expect([
      lock.version,
      lock.packages[""]?.version,
      example.dependencies["mds-sync"],
      /^version = "(.*)"$/m.exec(read("clients/python/pyproject.toml"))?.[1],
      /^## (\d\S*) \(\d{4}-\d\d-\d\d\)$/m.exec(read("CHANGELOG.md"))?.[1],
    ]).toEqual(Array(5).fill(version));
  });
});
