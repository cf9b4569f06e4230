import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** The program that tests start as a process: built, because it starts several times as fast as from its sources. */
export const programEntry = resolve(root, "dist/cli/main.js");

/** Puts the program into the folder `bin` there, as if it were installed, and returns a PATH that begins with it. */
export function installProgram(folder: string, path = process.env.PATH): string {
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  const script = `#!/bin/sh\nexec "${process.execPath}" "${programEntry}" "$@"\n`;
  writeFileSync(join(bin, "mds-sync"), script, { mode: 0o755 });
  return `${bin}:${path}`;
}

/** A built module that runs in a process of its own. */
export const processEntry = (name: string) => resolve(root, `dist/${name}.js`);

/** Builds the program and the pages of the dashboard once, before the first test, if a source has changed. */
export function setup(): void {
  execFileSync(process.execPath, [resolve(root, "scripts/build.ts"), "--if-stale"], { stdio: "inherit" });
}
