import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { PageQueries } from "../../src/dashboard/page-queries.ts";
import { ReaderThread } from "../../src/dashboard/reader-thread.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { fillEveryState } from "../support/dashboard/heatmap-content.ts";
import { nowTs, openFilledWarehouse } from "../support/warehouse/filled-warehouse.ts";

describe("the reader thread", () => {
  it.each(["missing", "status"] as const)("answers other queries while it reads %s", async (slow) => {
    const queries = new PageQueries(systemClock);
    const { path } = openFilledWarehouse(fillEveryState);
    const query = { path, params: {}, now: nowTs };
    const answered: string[] = [];
    const ask = async (kind: typeof slow | "schema") => {
      await queries.run({ ...query, kind });
      answered.push(kind);
    };
    const reading = ask(slow);
    await setImmediate();
    await ask("schema");
    await reading;
    expect(answered).toEqual(["schema", slow]);
  });

  it("answers queries, and rejects them once it is closed", async () => {
    const reader = new ReaderThread({
      path: openFilledWarehouse(fillEveryState).path,
      now: () => nowTs,
      clock: systemClock,
      log: silentLog,
    });
    expect((await reader.query("status", {})).streams).toHaveLength(9);
    expect((await reader.query("series", { name: "BL" })).map(({ name }) => name)).toEqual(["BLX"]);
    const last = reader.query("missing", {});
    await Promise.all([reader.close(), expect(last).rejects.toMatchObject({ code: "not_readable" })]);
    await expect(reader.query("status", {})).rejects.toMatchObject({ code: "not_readable" });
  });
});
