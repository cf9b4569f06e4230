import { spawn } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { hasTool } from "../support/has-tool.ts";
import { readProjectFile } from "../support/repository.ts";
import { TickServer } from "../support/serve/tick-server.ts";
import { STEP } from "../support/warehouse/filled-warehouse.ts";
import { parseTs } from "../support/warehouse/records.ts";
import { parseBlocks } from "./page-blocks.ts";

const document = readProjectFile("docs/teams.md");
const [, page = ""] = document.split(/^## The service's own API$/m);
const examples = (language: string) =>
  parseBlocks(page).flatMap((block) => (block.language === language ? [block.code] : []));

const fixture = new TickServer();
const noon = parseTs("2026-03-01T12:00:00Z");
beforeAll(async () => {
  fixture.warehouse.connection.database.exec(
    "INSERT INTO assets (id, symbol, name, first_seen, absences) VALUES ('btc-id', 'BTC', 'Bitcoin', '2026', 0)",
  );
  const count = 3000;
  const timestamps = Array.from({ length: count }, (_, at) => noon - (at + 1) * STEP).reverse();
  fixture.select(["btc-id"], noon - count * STEP);
  fixture.writeTicks(["btc-id"], timestamps);
  fixture.cover("btc-id", noon - count * STEP, noon - 4 * STEP);
  await fixture.start();
});

/** Where the examples say now, the fixture has its noon. */
const moments = {
  "now-2h": "2026-03-01T11:00:00Z",
  "now-1h": "2026-03-01T12:00:00Z",
  'datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")': '"2026-03-01T12:00:00Z"',
};

/** Runs an example against the fixture instead of the default address and the present. */
async function run(command: string, args: readonly string[], code: string): Promise<string> {
  const { host } = new URL(fixture.server?.baseUrl ?? "");
  const example = Object.entries({ ...moments, "127.0.0.1:9465": host }).reduce(
    (text, [from, to]) => text.replaceAll(from, to),
    code,
  );
  const child = spawn(command, [...args, example], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const status = await new Promise((resolve) => child.on("close", resolve));
  expect(status).toBe(0);
  return output;
}

describe("the API of the service in docs/teams.md", () => {
  it.runIf(hasTool("curl", "the curl examples of docs/teams.md"))("its curl examples answer", async () => {
    const [code = ""] = examples("sh").filter((block) => block.startsWith("curl "));
    const output = await run("sh", ["-c"], code);
    expect(output).toContain('{"content":[{"id":"btc-id","symbol":"BTC","name":"Bitcoin"');
    expect(output).toContain('"timestamp":"2026-03-01T11:59:30.000Z"');
  });

  it.runIf(hasTool("python3", "the Python example of docs/teams.md"))(
    "its Python example fetches all ticks",
    async () => {
      const [code = ""] = examples("python");
      const output = await run("python3", ["-c"], code);
      expect(output).toMatch(/^not covered: open from=2026-03-01T11:58:00/);
      expect(output).toContain("3000 ticks, the newest");
    },
  );

  it("its websocket examples subscribe, and replay an hour", async () => {
    const [live = "", replay = ""] = examples("js");
    const subscribed = await run(process.execPath, ["-e"], live);
    expect(subscribed).toContain('"event":"SUBSCRIBED_INDEX_TICKER","indexType":"GWA"');
    const lines = (await run(process.execPath, ["-e"], replay)).trim().split("\n");
    const events = lines.map((line) => (JSON.parse(line) as { event: string }).event);
    expect(events.filter((event) => event === "INDEX_TICKER")).toHaveLength(120);
    expect(events.filter((event) => event === "GAP")).toHaveLength(1);
    expect(events.at(-1)).toBe("REPLAY_ENDED");
  });
});
