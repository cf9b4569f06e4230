import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** A module that starts processes, or a helper that runs a whole sync or daemon against the simulator. */
const startsSystem =
  /"(?:node:child_process|playwright-core|[./\w-]*\/support\/(?:sync|daemon)\/\w+-harness\.ts|\.\/prove\.ts)"/;
const relativeImport = /(?:from\s+|import\s*\(\s*|new URL\(\s*)"(\.[^"]+)"/g;

/** The test files that start processes or a whole sync, directly or through a helper. `npm run test:unit` skips them. */
export function findSystemTests(root: string): string[] {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(ts|mjs)$/.test(file))
    .map((file) => join("test", file));
  const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));

  const reaches = (file: string, visited: Set<string>): boolean => {
    const source = sources.get(file);
    if (source === undefined || visited.has(file)) return false;
    visited.add(file);
    if (startsSystem.test(source)) return true;
    return [...source.matchAll(relativeImport)].some(([, path = ""]) =>
      reaches(normalize(join(dirname(file), path)), visited),
    );
  };
  return files.filter((file) => file.endsWith(".test.ts") && reaches(file, new Set()));
}
