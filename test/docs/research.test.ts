import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fillDemoWarehouse } from "./demo-warehouse.ts";
import { parseBlocks, replaceOutputs } from "./page-blocks.ts";
import { blockRunners, type ResearchPlace } from "./research-runners.ts";

const page = resolve(import.meta.dirname, "../../docs/research.md");
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
