import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
let isBuilt = false;

/**
 * The program as it is installed, for what measures it: Node's own reading of TypeScript would take memory in every thread.
 * Built anew, since what is measured is what stands here now.
 */
export function builtProgram(): string {
  if (!isBuilt) execFileSync("npm", ["run", "build"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  isBuilt = true;
  return resolve(root, "dist/cli/main.js");
}
