import { join } from "node:path";
import { expect, it } from "vitest";
import {
  readLastCrash,
  recordCrash,
  recordKilledWriter,
} from "../../../src/warehouse/sqlite/crash-marker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

it("names the last of several killed writers, and keeps what a writer has said itself", () => {
  const path = join(temporaryFolder(), "mds.sqlite");
  for (const pid of [1, 2, 3]) {
    recordKilledWriter(path, { holder: `pid ${pid}`, sinceMs: pid * 1_000 });
    expect(readLastCrash(path)?.line).toContain(`the writer (pid ${pid}) was killed`);
  }
  recordCrash(path, new Error("a bug"), 4_500_000);
  recordKilledWriter(path, { holder: "pid 4", sinceMs: 4_000 });
  expect(readLastCrash(path)?.line).toBe("Error: a bug");
});
