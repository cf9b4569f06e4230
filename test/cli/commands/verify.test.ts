import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runInProcess } from "../../support/cli/run-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const service = {
  MDS_BASE_URL: "http://127.0.0.1:9",
  MDS_WS_URL: "ws://127.0.0.1:9",
  MDS_CLIENT_ID: "kestrel",
  MDS_CLIENT_SECRET: "secret",
};

describe("mds-sync verify", () => {
  it.each([
    ["no file at all", undefined, 4, /there is no warehouse at .*: nothing is synced yet/],
    ["an empty file", "", 4, /is empty: nothing is synced yet/],
    ["something else", "not a database, by far not".repeat(99), 2, /is not an SQLite database/],
  ])("rejects %s, and leaves it unchanged", async (_, content, exit, line) => {
    const folder = temporaryFolder();
    const path = join(folder, "mds.sqlite");
    if (content !== undefined) writeFileSync(path, content);
    const { status, stdout, stderr } = await runInProcess(["verify"], {
      env: { ...service, MDS_WAREHOUSE: path },
      cwd: folder,
    });
    expect({ status, stdout }).toEqual({ status: exit, stdout: "" });
    expect(stderr).toMatch(line);
    expect(existsSync(path) ? readFileSync(path, "utf8") : undefined).toBe(content);
    expect(readdirSync(folder)).toEqual(content === undefined ? [] : ["mds.sqlite"]);
  });
});
