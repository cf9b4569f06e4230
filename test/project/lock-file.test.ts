import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";

interface Entry {
  version?: string;
  resolved?: string;
  integrity?: string;
  link?: boolean;
  optionalDependencies?: Record<string, string>;
}

const root = resolve(import.meta.dirname, "../..");
const readJson = (file: string) => JSON.parse(readFileSync(resolve(root, file), "utf8"));
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
