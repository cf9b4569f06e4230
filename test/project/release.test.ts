import { describe, expect, it } from "vitest";
import { findProblems } from "../../scripts/release.ts";
import { readProjectFile } from "../support/repository.ts";

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
    expect([
      readJson("package-lock.json").version,
      lock.packages[""]?.version,
      readJson("examples/typescript/package.json").dependencies["mds-sync"],
      /^version = "(.*)"$/m.exec(readProjectFile("clients/python/pyproject.toml"))?.[1],
      /^## (\d\S*) \(\d{4}-\d\d-\d\d\)$/m.exec(readProjectFile("CHANGELOG.md"))?.[1],
    ]).toEqual(Array(5).fill(readJson("package.json").version));
  });
});

interface Entry {
  version?: string;
  resolved?: string;
  integrity?: string;
  link?: boolean;
  optionalDependencies?: Record<string, string>;
}

const readJson = (file: string) => JSON.parse(readProjectFile(file));
const lock = readJson("package-lock.json") as { packages: Record<string, Entry> };
const manifest = readJson("package.json") as Record<
  "dependencies" | "devDependencies",
  Record<string, string>
>;
const entries = Object.entries(lock.packages).filter(([path]) => path !== "");

describe("the lock file installs on a fresh machine, linux x64 or arm64", () => {
  it("names no registry", () => {
    expect(entries.filter(([, entry]) => entry.resolved !== undefined).map(([path]) => path)).toEqual([]);
  });

  it("has the checksum of every package", () => {
    expect(entries.filter(([, entry]) => !entry.integrity && !entry.link).map(([path]) => path)).toEqual([]);
  });

  it("pins every direct dependency to the exact locked version", () => {
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      expect(`${name} ${version}`).toMatch(/ \d+\.\d+\.\d+(-[\w.]+)?$/);
      expect(`${name} ${lock.packages[`node_modules/${name}`]?.version}`).toBe(`${name} ${version}`);
    }
  });

  // On some machines npm drops the binaries of other platforms from the lock file; a package then installs without its binary.
  it("has the binaries of both platforms for every package that offers them", () => {
    const missing = entries.flatMap(([path, { optionalDependencies = {} }]) => {
      const offered = Object.keys(optionalDependencies);
      return ["x64", "arm64"].flatMap((cpu) => {
        const binaries = offered.filter((name) => new RegExp(`linux-${cpu}(-gnu)?$`).test(name));
        return binaries.filter(
          (name) =>
            !(`node_modules/${name}` in lock.packages) && !(`${path}/node_modules/${name}` in lock.packages),
        );
      });
    });
    expect(missing).toEqual([]);
  });
});
