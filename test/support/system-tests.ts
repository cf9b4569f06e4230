import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** A module that starts processes, or a helper that runs a whole sync or daemon against the simulator. */
const startsSystem =
  /"(?:node:child_process|playwright-core|[./\w-]*\/support\/(?:sync|daemon)\/\w+-harness\.ts|\.\/prove\.ts)"/;
/** Processes, threads, servers, mocks, and changes of the process itself: another test in it would notice. */
const changesProcess =
  /"(?:node:child_process|playwright-core|pg|@duckdb\/node-api|[./\w-]*\/support\/(?:daemon\/\w+-harness|postgres)\.ts|\.\/prove\.ts)"|\bvi\.(?:stub\w+|spyOn)\(|\bsyncBuiltinESMExports\(|\bprocess\.(?:chdir|memoryUsage)\(|\bnew Worker\(new URL\b|\btestServe\(\);/;
/** A module that reads the clock when it is loaded: in a shared process that may be minutes ago. */
const readsClockOnLoad = /^(?:export )?const \w+[^\n]*\bDate\.now\(\)/m;
const relativeImport = /(?:from\s+|import\s*\(\s*|new URL\(\s*)"(\.[^"]+)"/g;

/** The test files that start processes or a whole sync, directly or through a helper. `npm run test:unit` skips them. */
export function findSystemTests(root: string): string[] {
  return findTests(root, [startsSystem]);
}

/** The test files that cannot share a process with others. */
export function findIsolatedTests(root: string): string[] {
  return findTests(root, [changesProcess, readsClockOnLoad]);
}

/** The test files that match one of the patterns, or reach a helper that does. */
function findTests(root: string, patterns: readonly RegExp[]): string[] {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(ts|mjs)$/.test(file))
    .map((file) => join("test", file));
  const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));

  const reaches = (file: string, visited: Set<string>): boolean => {
    const source = sources.get(file);
    if (source === undefined || visited.has(file)) return false;
    visited.add(file);
    if (patterns.some((pattern) => pattern.test(source))) return true;
    return [...source.matchAll(relativeImport)].some(([, path = ""]) =>
      reaches(normalize(join(dirname(file), path)), visited),
    );
  };
  return files.filter((file) => file.endsWith(".test.ts") && reaches(file, new Set()));
}
