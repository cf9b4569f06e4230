import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { programEntry } from "../support/build-program.ts";
import { readProjectFile } from "../support/repository.ts";

/** Runs the built program after a script that breaks something. Returns what it prints. */
function runBroken(script: string): string {
  const preload = `data:text/javascript,${encodeURIComponent(script)}`;
  const { stderr } = spawnSync(process.execPath, ["--import", preload, programEntry, "settings"], {
    encoding: "utf8",
  });
  return stderr;
}

/** The line of the source that a stack trace names first. */
function findSourceLine(trace: string): string | undefined {
  const [, file = "", line = ""] = /\(?(src\/[\w/-]+\.ts):(\d+):\d+\)?/.exec(trace) ?? [];
  return readProjectFile(file).split("\n")[Number(line) - 1];
}

describe("the built program", () => {
  it("names the source in the stack trace of an unexpected failure", () => {
    const printed = runBroken(`const { parse } = JSON;
      JSON.parse = (text) => { if (text.includes('"mds-sync"')) throw new Error("broken"); return parse(text); };`);
    expect(printed).toContain("unexpected failure, please report it: Error: broken");
    expect(findSourceLine(printed)).toContain("JSON.parse(manifest)");
  });

  it("names the source in the stack trace of a crash", () => {
    const printed = runBroken('process.cwd = () => { throw new Error("broken"); };');
    expect(findSourceLine(printed)).toContain("process.cwd()");
  });

  it("comes with the licences of the packages that the program and its pages contain", () => {
    const notices = readFileSync(join(dirname(programEntry), "../NOTICES.txt"), "utf8");
    const names = [...notices.matchAll(/^(\S+) \S+ \([\w.-]+\)$/gm)].map(([, name]) => name);
    expect(names).toEqual(expect.arrayContaining(["commander", "yaml", "uplot", "@codemirror/view"]));
    expect(names).not.toContain("vitest");
  });
});
