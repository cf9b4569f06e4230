import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

/** Whether a tool is installed; if not, the check is skipped. */
export function hasTool(tool: string, skipped: string): boolean {
  return (
    spawnSync(tool, ["--version"]).error === undefined || skipWithout(`${tool} is not installed`, skipped)
  );
}

export const python = process.env.MDS_TEST_PYTHON ?? "/usr/bin/python3";

/** Whether Python has the modules. Finds them only: to import pandas takes a second of CPU. */
export function hasModules(modules: string, skipped: string): boolean {
  const find = `from importlib.util import find_spec; exit(not all(map(find_spec, "${modules}".split())))`;
  return spawnSync(python, ["-c", find]).status === 0 || skipWithout(`python3 lacks ${modules}`, skipped);
}

/** Prints what is skipped and why. `.ci/run` sets MDS_TEST_TOOLS: there, nothing is skipped for want of a tool. */
export function skipWithout(reason: string, skipped: string): false {
  const text = `${reason}, skipped: ${skipped}`;
  if (process.env.MDS_TEST_TOOLS === "required") throw new Error(text);
  process.stderr.write(`${text}\n`);
  return false;
}

/** Debian's package: Chromium without windows, which takes a third less CPU. */
export const CHROMIUM_PATH = "/usr/bin/chromium-headless-shell";
export const hasChromium = existsSync(CHROMIUM_PATH);
