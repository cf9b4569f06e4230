// npm runs this around `npm pack`: an installed package has nothing to build, so its package.json names no script and no
// development dependency. npm would else ask each user to allow `prepare`.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const file = join(import.meta.dirname, "package.json");
const whole = join(import.meta.dirname, "package.json.whole");

if (process.argv.includes("--strip")) {
  const manifest = readFileSync(file, "utf8");
  const { scripts, devDependencies, overrides, allowScripts, ...shipped } = JSON.parse(manifest);
  // An interrupted `npm pack` left it stripped: keep the whole one that lies beside it.
  if (scripts !== undefined) writeFileSync(whole, manifest);
  writeFileSync(file, `${JSON.stringify(shipped, null, 2)}\n`);
} else {
  renameSync(whole, file);
}
