import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CATALOGUE } from "../../src/export/manifest.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { installProgram } from "../support/build-program.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";
import { root } from "../support/repository.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { openCatalogue, queryDuckDb, querySqlite } from "./cookbook/engines.ts";
import { fillDemoWarehouse } from "./demo-warehouse.ts";
import { type PageBlock, parseBlocks, replaceOutputs } from "./page-blocks.ts";

/** Where the blocks of the research page run. */
interface ResearchPlace {
  readonly folder: string;
  /** The warehouse; in `folder`, as `mds.sqlite`. */
  readonly path: string;
  readonly clock: Clock;
  /** Every block of the page. */
  readonly blocks: readonly PageBlock[];
}

/** Runs a block of one language, and returns what it prints to stdout. */
type BlockRunner = (block: PageBlock, place: ResearchPlace) => Promise<string>;

/** By the language of the block. A language that is not listed here is an error. */
const blockRunners: Readonly<Record<string, BlockRunner>> = {
  sh: runShell,
  sql: async ({ code }, { path, folder }) => {
    if (code.startsWith("-- DuckDB")) return queryExport(join(folder, "export", CATALOGUE), code);
    const reader = openReader(path);
    try {
      return querySqlite(reader, code);
    } finally {
      reader.close();
    }
  },
  ts: runTypeScript,
  python: printInPython,
};

/** What a block before it has exported. */
async function queryExport(file: string, sql: string): Promise<string> {
  const catalogue = await openCatalogue(file);
  try {
    return await queryDuckDb(catalogue.connection, sql);
  } finally {
    catalogue.close();
  }
}

/** A line that is one command of mds-sync runs in this process; a block with a pipe or another program runs in a shell. */
async function runShell({ code }: PageBlock, place: ResearchPlace): Promise<string> {
  const lines = code.trimEnd().replaceAll("\\\n", " ").split("\n");
  if (
    lines.some(
      (line) => !line.startsWith("mds-sync ") || /[|<>;&]/.test(line.replaceAll(/'[^']*'|"[^"]*"/g, "")),
    )
  )
    return runInShell(code, place);
  let text = "";
  for (const line of lines) {
    const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
      ([, one, two, bare]) => one ?? two ?? bare ?? "",
    );
    const { stdout, stderr, status } = await runInProcess(words.slice(1), {
      cwd: place.folder,
      env: { MDS_WAREHOUSE: place.path },
      clock: place.clock,
    });
    // A page shows what a failed command says: that is its answer.
    text += status === 0 ? stdout : `${stdout}${stderr}(exit ${status})\n`;
  }
  return text;
}

function runInShell(code: string, { folder, path }: ResearchPlace): string {
  const { stdout, stderr, status } = spawnSync("sh", ["-c", code], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: installProgram(folder), MDS_WAREHOUSE: path },
  });
  if (status !== 0) throw new Error(`exit ${status}: ${stderr}`);
  return stdout;
}

/** What the Python blocks print, by line. */
const pythonOutputs = new Map<number, string>();

const inPython = `import contextlib, io, json, sys
printed = []
for code in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "block", "exec"), {})
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)`;

/** All blocks run in one process, each with names of its own: pandas takes a second to load. */
async function printInPython(block: PageBlock, { folder, path, blocks }: ResearchPlace): Promise<string> {
  if (pythonOutputs.size === 0) {
    const own = blocks.filter(({ language }) => language === "python");
    const input = own.map(({ code }) => code.replaceAll('"data/mds.sqlite"', JSON.stringify(path)));
    const outputs = hasModules("pandas", `${own.length} Python blocks of the page`)
      ? (JSON.parse(runPython(inPython, [], { input, cwd: folder })) as string[])
      : own.map(({ output }) => output ?? "");
    for (const [at, { line }] of own.entries()) {
      // pandas pads the names of its columns.
      pythonOutputs.set(line, (outputs[at] ?? "").replaceAll(/ +$/gm, ""));
    }
  }
  return pythonOutputs.get(block.line) ?? "";
}

let modules = 0;

/** Runs as a module of its own, with the sources in place of the package and `print` in place of `console.log`. */
async function runTypeScript({ code }: PageBlock, { folder, path }: ResearchPlace): Promise<string> {
  const library = pathToFileURL(join(root, "src/library/open-warehouse.ts")).href;
  const printed: string[] = [];
  const store = globalThis as typeof globalThis & { printResearch?: (...values: unknown[]) => void };
  store.printResearch = (...values) => void printed.push(`${values.map(String).join(" ")}\n`);
  const file = join(folder, `block-${++modules}.mts`);
  const source = code
    .replaceAll('"mds-sync"', JSON.stringify(library))
    .replaceAll("console.log", "globalThis.printResearch")
    .replaceAll('"data/mds.sqlite"', JSON.stringify(path));
  writeFileSync(file, source);
  await import(/* @vite-ignore */ pathToFileURL(file).href);
  return printed.join("");
}

const page = join(root, "docs/research.md");
const text = readFileSync(page, "utf8");
const folder = temporaryFolder(afterAll);
let place: ResearchPlace;

beforeAll(async () => {
  const { path, clock } = await fillDemoWarehouse(folder);
  place = { folder, path, clock, blocks: parseBlocks(text) };
});

describe("the research page", () => {
  // `npx vitest run test/docs/research.test.ts -u` writes the outputs into the page. Review them before you commit.
  it("shows what its blocks print", async () => {
    const printed = await replaceOutputs(text, async (block) => {
      const run = blockRunners[block.language];
      if (!run) throw new Error(`line ${block.line}: nothing runs ${block.language}`);
      return run(block, place);
    });
    await expect(printed).toMatchFileSnapshot(page);
  });

  it("has an output for every block that prints something", () => {
    const silent = parseBlocks(text).filter(
      ({ output, code }) => output === undefined && !/--(out|to) [a-z]/.test(code),
    );
    expect(silent).toEqual([]);
    const languages = new Set(parseBlocks(text).map(({ language }) => language));
    expect(languages).toEqual(new Set(["sh", "sql", "ts", "python"]));
  });
});
