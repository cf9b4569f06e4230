import { spawnSync } from "node:child_process";

/** Whether a tool is here; where it is not, the run says what it did not show. */
export function hasTool(tool: string, shown: string): boolean {
  const isHere = spawnSync(tool, ["--version"]).error === undefined;
  if (!isHere) process.stderr.write(`${tool} is not installed: not shown here: ${shown}\n`);
  return isHere;
}
