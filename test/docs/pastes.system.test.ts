import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { installProgram } from "../support/build-program.ts";
import { hasTool } from "../support/has-tool.ts";
import { compileCacheEnv } from "../support/program-process.ts";
import { readProjectFile, root } from "../support/repository.ts";
import { type PageBlock, parseBlocks } from "./page-blocks.ts";

const inDocs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".md"),
);
const inRoot = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md"];
const pages = [...inRoot, ...inDocs.filter((name) => !inRoot.includes(name))];

/** Blocks that are run by another test, or that cannot be run here, by their first line: where, or why not. */
const exceptions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "README.md": {
    "npm ci": "installs the project; test/project/package.system.test.ts runs the demo in a clone",
  },
  "CONTRIBUTING.md": { "npm ci": "installs the project, and npm test is this suite" },
  "commands.md": { "mds-sync ": "test/docs/commands.test.ts checks the options of each example" },
  "library.md": {
    "npm pack": "needs the registry of npm; test/project/package.system.test.ts installs the package",
  },
  "research.md": { "mds-sync ": "test/docs/research.test.ts runs each block and compares what it prints" },
  "running.md": {
    "npm pack": "changes the machine, and needs an address of the service",
    "docker build": "needs Docker",
  },
  "teams.md": {
    "duckdb -readonly": "needs the command line of DuckDB; test/export reads the same file",
    AWS_ACCESS_KEY_ID: "needs a bucket; test/export writes to one",
    "mds-sync serve ": "serves until it is stopped",
    "curl ": "test/docs/serve.test.ts runs it against a server",
  },
};

/** Where a page names a folder of the machine, it is one in the folder of the test. */
const places = ["/backup"];

const isShell = ({ language }: PageBlock) => language === "sh" || language === "console";
const exceptionOf = (page: string, { code }: PageBlock) =>
  Object.keys(exceptions[page] ?? {}).find((start) => code.startsWith(start));
const readPage = (page: string) => readProjectFile(inRoot.includes(page) ? page : `docs/${page}`);

/** A clone with the script that runs the program; the program is also in the path, as if it were installed. */
const folder = mkdtempSync(join(tmpdir(), "mds-pastes-"));
mkdirSync(join(folder, "backup"));
const path = installProgram(folder);
copyFileSync(join(folder, "bin/mds-sync"), join(folder, "mds-sync"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a block as a person does who pastes it into a shell. What it leaves running ends with the test. */
async function paste({ code, language }: PageBlock): Promise<{ output: string; status: number | null }> {
  const commands = language === "sh" ? code : code.replaceAll(/^(?!\$ ).*\n/gm, "").replaceAll(/^\$ /gm, "");
  const moved = places.reduce((all, place) => all.replaceAll(`${place}/`, `${folder}${place}/`), commands);
  const child = spawn("sh", ["-c", `exec 2>&1\n${moved}`], {
    cwd: folder,
    env: { PATH: path, HOME: folder, ...compileCacheEnv() },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  onTestFinished(() => void spawnSync("kill", ["--", `-${child.pid}`], { stdio: "ignore" }));
  const exit = new Promise<number | null>((done) => child.once("close", done));
  return { output: await text(child.stdout), status: await exit };
}

describe("a block of a page", () => {
  it("has a language that says whether it is to be pasted", () => {
    for (const page of pages) {
      const unmarked = [...readPage(page).matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)].filter(
        ([, language = "", code = ""]) =>
          !["sh", "console"].includes(language) &&
          /^(\$ |(sudo |npx )?(\.\/)?mds-sync |npm |docker |curl |sqlite3 |duckdb )/m.test(code),
      );
      expect([page, unmarked.map(([block]) => block)]).toEqual([page, []]);
    }
  });

  it("is an exception only if it exists and has a reason", () => {
    for (const [page, starts] of Object.entries(exceptions)) {
      const used = new Set(
        parseBlocks(readPage(page))
          .filter(isShell)
          .map((block) => exceptionOf(page, block)),
      );
      used.delete(undefined);
      expect([page, [...used].sort()]).toEqual([page, Object.keys(starts).sort()]);
    }
  });

  // In the order of the pages: those of the README make the warehouse that the others read.
  for (const page of pages)
    for (const block of parseBlocks(readPage(page)).filter(isShell)) {
      if (exceptionOf(page, block) !== undefined) continue;
      const tool = ["sqlite3", "openssl"].find((name) => block.code.includes(`${name} `)) ?? "sh";
      const title = `can be pasted: ${page}, line ${block.line}`;
      it.runIf(hasTool(tool, `${page}, line ${block.line}`))(title, async () => {
        const { output, status } = await paste(block);
        if (block.language === "console") expect(output).toBe(block.code.replaceAll(/^\$ .*\n/gm, ""));
        else expect({ status, output }).toEqual({ status: 0, output: expect.any(String) });
        const tried = join(folder, "data/try.sqlite");
        if (block.code.includes("data/try.sqlite")) copyFileSync(tried, join(folder, "data/mds.sqlite"));
      });
    }
});
