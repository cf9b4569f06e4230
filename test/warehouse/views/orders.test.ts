import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { views } from "../../../src/warehouse/views/views.ts";
import { fillDemoWarehouse } from "../../docs/demo-warehouse.ts";
import { python, skipWithout } from "../../support/has-tool.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

// Before 3.41 SQLite mistakes the directions of the tables after a LEFT JOIN that it omits.
describe("the order of time in a view", () => {
  it("is right in an older SQLite, by every key and name, up and down, sorted and with lag()", async () => {
    if (!existsSync(python)) {
      skipWithout(`${python} is not installed`, "the order of every view in Debian's SQLite");
      return;
    }
    const { path } = await fillDemoWarehouse(temporaryFolder());
    const script = join(import.meta.dirname, "check-orders.py");
    const { stdout } = await promisify(execFile)(python, [script, path], { maxBuffer: 2 ** 24 });
    const { tried, wrong } = JSON.parse(stdout) as { tried: Record<string, number>; wrong: string[] };
    expect(wrong).toEqual([]);
    const timeless = ["derivative_contracts", "markets", "shared_names"];
    expect(Object.keys(tried).concat(timeless).sort()).toEqual(Object.keys(views).sort());
  });
});
