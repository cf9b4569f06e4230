import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { ExportStep } from "../../src/export/export-warehouse.ts";
import { type Manifest, readManifest } from "../../src/export/manifest.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { readTableRows } from "../support/export/delta-reader.ts";
import { expectSame, exportIn, exportUntil, inCatalogue, killExport } from "../support/export/read-export.ts";
import { fillEverything, monthStart, openAt } from "../support/export/sample-data.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { viewsBesideSync } from "../support/warehouse/empty-warehouse.ts";
import { STEP } from "../support/warehouse/filled-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

/** Every file that a manifest names is there, and holds what the manifest says. */
function expectWhole(folder: string, { files }: Manifest): void {
  for (const { version, sha256 } of files) {
    const bytes = readFileSync(join(folder, "export", version));
    expect(createHash("sha256").update(bytes).digest("hex"), version).toBe(sha256);
  }
}

const ticksOf = (folder: string) =>
  inCatalogue(join(folder, "export/mds.duckdb"), "SELECT count(*)::INTEGER FROM index_ticks");

it("F16: kill -9 at any step leaves an export whole, and the next one is right and removes the leftovers", async () => {
  const folder = temporaryFolder();
  const warehouse = openAt(folder, viewsBesideSync);
  onTestFinished(() => warehouse.close());
  warehouse.transaction(fillEverything);
  // The very first one too: there is nothing yet, so nothing may look like an export.
  await killExport(folder);
  expect(readdirSync(join(folder, "export"))).not.toContain("manifest.json");
  await exportIn(folder);

  const steps: [ExportStep, number, isNew: boolean][] = [
    ["generation stored", 1, false],
    // The tables of the rows come before coverage and gaps, and all before the catalogue.
    ["table committed", 3, false],
    ["catalogue switched", 1, true],
    ["manifest switched", 1, true],
  ];
  const first = (await ticksOf(folder))[0]?.[0] as number;
  for (const [i, [step, nth, isNew]] of steps.entries()) {
    const old = readManifest(join(folder, "export"));
    const before = await ticksOf(folder);
    // Two months change.
    const changed = [monthStart(3), monthStart(0)].map((from) => tick(from + (5000 + i) * STEP, `${i}.5`));
    storeTicks(warehouse, changed);
    // In a process of its own where the rows are stored and the position in the journal is not.
    if (step === "table committed") await killExport(folder, { step, nth });
    else await exportUntil(folder, step, nth);
    const after = await ticksOf(folder);
    const stored = [[first + 2 * (i + 1)]];
    expect(after, step).toEqual(isNew ? stored : before);
    const manifest = readManifest(join(folder, "export"));
    expect(manifest?.generation === old?.generation, step).toBe(step !== "manifest switched");
    if (manifest) expectWhole(folder, manifest);
    // The table has the old version or the new one, whole.
    const isCommitted = step !== "generation stored";
    const rows = await readTableRows(join(folder, "export/versions/index_ticks"));
    expect([[rows.length]], step).toEqual(isCommitted ? stored : before);
  }

  await exportIn(folder);
  await expectSame(folder, "index_ticks");
  const manifest = readManifest(join(folder, "export")) as Manifest;
  expectWhole(folder, manifest);
  for (const { path, version } of manifest.files)
    expect(
      readFileSync(join(folder, "export", path)).equals(readFileSync(join(folder, "export", version))),
    ).toBe(true);
  expect(existsSync(join(folder, "export/.mds-sync/work"))).toBe(false);
  expect(existsSync(join(folder, "export/.mds-sync/export.writer"))).toBe(false);
  // A day later nobody needs the older ones: what is left belongs to the newest, or to the one that it has just replaced.
  const tomorrow = Date.now() + 86_400_000;
  const generations: Manifest[] = [];
  for (const now of [tomorrow, tomorrow + 7_200_000]) {
    await exportIn(folder, { clock: { ...systemClock, now: () => now } });
    generations.push(readManifest(join(folder, "export")) as Manifest);
  }
  const left = readdirSync(join(folder, "export/versions"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".parquet") && !name.includes("_delta_log"))
    .map((name) => `versions/${name}`);
  const named = generations.flatMap(({ files }) => files.map(({ version }) => version));
  expect(left.sort()).toEqual([...new Set(named)].sort());
});
