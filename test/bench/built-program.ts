import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
let isBuilt = false;

/**
 * Builds the program and returns its entry file. Benchmarks run the build: loading TypeScript would take memory in every
 * thread.
 */
export function buildProgram(): string {
  if (!isBuilt) execFileSync("npm", ["run", "build"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  isBuilt = true;
  return resolve(root, "dist/cli/main.js");
}
