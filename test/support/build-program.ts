import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** The program that tests start as a process: built, because it starts several times as fast as from its sources. */
export const programEntry = resolve(root, "dist/cli/main.js");

/** A built module that runs in a process of its own. */
export const processEntry = (name: string) => resolve(root, `dist/${name}.js`);

/** Builds the program and the pages of the dashboard once, before the first test, if a source has changed. */
export function setup(): void {
  execFileSync(process.execPath, [resolve(root, "scripts/build.ts"), "--if-stale"], { stdio: "inherit" });
}
