import { spawnSync } from "node:child_process";

/** Whether a tool is installed; if not, prints which check is skipped. */
export function hasTool(tool: string, skipped: string): boolean {
  const isInstalled = spawnSync(tool, ["--version"]).error === undefined;
  if (!isInstalled) process.stderr.write(`${tool} is not installed, skipped: ${skipped}\n`);
  return isInstalled;
}
