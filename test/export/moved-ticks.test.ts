import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import type { Micros } from "../../src/model/time.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { readSeriesCoverage } from "../../src/warehouse/coverage/series-queries.ts";
import { declareTargets } from "../../src/warehouse/coverage/targets.ts";
import { computeStaleBars } from "../../src/warehouse/rows/kept-bars.ts";
import { type HeldDay, moveDay } from "../../src/warehouse/rows/moved-rows.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { readSnapshot, readTableRows } from "../support/export/delta-reader.ts";
import { exportIn, inCatalogue, inWarehouse, shareExport } from "../support/export/read-export.ts";
import { DAY, HOUR, month, monthStart, present } from "../support/export/sample-data.ts";
import { expectSoundFile } from "../support/warehouse/expect-sound-ledger.ts";
import { tick } from "../support/warehouse/records.ts";

const rules = { settleDelay: 2 * HOUR, period: HOUR, step: 1, serviceWindow: 200 * DAY };
const from = monthStart(3);
const days = 3;

/** Hourly ticks of the first days of a month, proven. */
function fill(warehouse: WarehouseWriter, indexId: string, start: Micros, isNew = false): void {
  warehouse.transaction((t) => {
    const key = { stream: "index_ticks", series: t.dictionary.getSeriesKey("GWA", indexId) } as const;
    t.dictionary.nameSeries(key.series, indexId.toUpperCase());
    const ticks = Array.from({ length: days * 24 }, (_, i) =>
      tick(start + i * HOUR, i === 5 ? "1.2345678901234567890123" : `${60_000 + i}.25`, { indexId }),
    );
    if (isNew) declareTargets(t, "index_ticks", [{ key, from: start, ...rules }], present);
    writeRecords(t, "index_ticks", ticks, "rest");
    settle(t, key, { from: start, to: start + days * DAY }, "rows");
    computeStaleBars(t, 10_000);
  });
}

const moveBefore = monthStart(0);
const share = shareExport(
  (warehouse) => {
    for (const start of [from, monthStart(2), monthStart(0)]) fill(warehouse, "btc", start, start === from);
  },
  { moveBefore },
);

function exportedFolder() {
  const {
    folder,
    warehouse,
    result: { held_days },
  } = share();
  const place = join(folder, "export");
  const move = (held: readonly HeldDay[] = []) =>
    held.reduce((rows, day) => rows + warehouse.transaction((t) => moveDay(t, day, place)), 0);
  const ask = (sql: string) => inWarehouse(join(folder, "mds.sqlite"), sql);
  return { folder, warehouse, place, move, ask, held_days };
}

/** All ticks of the table, in order. */
async function exported(place: string) {
  const rows = await readTableRows(join(place, "versions/index_ticks"));
  const texts = rows.map(({ index_id, ts, price, price_digits }) =>
    JSON.stringify([index_id, Number(ts), price, price_digits]),
  );
  return texts.sort();
}

const dayText = (ts: Micros) => new Date(ts / 1000).toISOString().slice(0, 10);
const ticksAndCoverage =
  "SELECT index_id, from_ts, to_ts, proof, reason FROM coverage WHERE stream = 'index_ticks' ORDER BY ALL";

describe("index ticks that the export has", () => {
  it("F21: are covered for the library and the commands, which say where they are", async () => {
    const { folder, place, move, ask, held_days } = exportedFolder();
    expect(move(held_days)).toBe(2 * days * 24);
    const path = join(folder, "mds.sqlite");
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    using library = openWarehouse(path);
    const moved = { from: dayText(from), to: dayText(from + days * DAY) };
    expect(library.isWhole("BTC", moved)).toBe(true);
    expect(library.gaps({ series: "BTC", stream: "index_ticks", ...moved })).toEqual([]);
    const hours = library.bars("BTC", { every: "1h", ...moved, requireComplete: true });
    expect(
      hours.map(({ ts, close_exact, coverage, quality }) => [ts, close_exact, coverage, quality]),
    ).toEqual(
      ask(
        `SELECT ts, close_exact, coverage, quality FROM bars_1h WHERE ts < ${from + days * DAY} ORDER BY ts`,
      ),
    );
    expect(hours).toHaveLength(days * 24);
    // Without bounds the bars begin with the first hour, not with the first tick that is left.
    expect(library.bars("BTC", { every: "1h" })[0]?.ts).toBe(from);
    expect(warned).not.toHaveBeenCalled();

    const where = `ticks of BTC between ${moved.from}T00:00:00.000000Z and ${moved.to}T00:00:00.000000Z were moved to ${place}`;
    expect(library.ticks("BTC", moved)).toEqual([]);
    expect(library.ticks("BTC", { ...moved, as: "columns" })[0]?.length).toBe(0);
    expect(library.bars("BTC", { every: "7m", ...moved })).toEqual([]);
    expect(warned.mock.calls).toEqual([[where, { code: "MDS_MOVED" }]]);
    expect(() => library.ticks("BTC", { ...moved, requireComplete: true })).toThrow(where);
    expect(() => library.bars("BTC", { every: "10m", ...moved, requireComplete: true })).toThrow(where);
    expect(library.asOf(from + DAY, "BTC")).toMatchObject([{ price: null, is_complete: 0 }]);
    expect(library.series()).toMatchObject([{ name: "BTC", has_ticks: 1 }]);

    const run = (...args: string[]) =>
      runInProcess([...args, "--warehouse", path, "--format", "ndjson"], { cwd: folder });
    const range = ["--from", moved.from, "--to", moved.to];
    expect(await run("ticks", "BTC", ...range)).toMatchObject({
      status: 0,
      stdout: "",
      stderr: expect.stringContaining(`mds-sync: note: ${where}\n`),
    });
    expect(await run("ticks", "BTC", ...range, "--require-complete")).toMatchObject({
      status: 4,
      stdout: "",
    });
    expect((await run("bars", "BTC", "--every", "1h", ...range)).stderr).not.toContain("moved");
    expect((await run("asof", dayText(from + DAY), "BTC")).stderr).toContain(`were moved to ${place}\n`);
  });

  it("F21: single days that a database has are gaps of an export that never had them, and stay in one that has", async () => {
    const { folder, warehouse, place, held_days } = exportedFolder();
    const later = join(folder, "later");
    const read = async (folder: string, sql: string) =>
      (await inCatalogue(join(folder, "mds.duckdb"), sql)).map((row) =>
        row.map((value) => (/^\d+$/.test(String(value)) ? Number(value) : value)),
      );
    const before = await exported(place);
    for (const day of held_days?.filter((held) => held.from === from + DAY) ?? [])
      warehouse.transaction((t) => moveDay(t, day, "postgres://db:5432/market"));
    await exportIn(folder);
    expect(await exported(place)).toEqual(before);
    const coverage = [from, from + days * DAY, "rows", null];
    expect((await read(place, ticksAndCoverage))[0]?.slice(1)).toEqual(coverage);
    await exportIn(folder, { to: later });
    expect((await exported(later)).length).toBe(before.length - 24);
    expect((await read(later, ticksAndCoverage)).slice(0, 2).map((row) => row.slice(1))).toEqual([
      [from, from + DAY, "rows", null],
      [from + 2 * DAY, from + days * DAY, "rows", null],
    ]);
    expect(await read(later, "SELECT from_ts, to_ts FROM gaps WHERE reason = 'not exported'")).toEqual([
      [from + DAY, from + 2 * DAY],
    ]);
  });

  it("F21: leave the warehouse day by day, stay covered, and their bars stay", async () => {
    const { folder, warehouse, place, move, ask, held_days } = exportedFolder();
    const before = await exported(place);
    expect(held_days?.length).toBe(2 * days);
    // A correction after the export: the export does not have that day as it is now.
    warehouse.transaction((t) =>
      writeRecords(t, "index_ticks", [tick(from + HOUR, "7.5", { indexId: "btc" })], "rest"),
    );
    warehouse.transaction((t) => computeStaleBars(t, 10_000));
    const bars = () =>
      ask("SELECT name, ts, open, high_exact, close, n_ticks, coverage, quality FROM bars_1h ORDER BY ts");
    const gaps = () =>
      ask("SELECT from_ts, state, reason FROM gaps WHERE stream = 'index_ticks' AND reason <> 'settling'");
    const [barsBefore, gapsBefore] = [bars(), gaps()];
    expect(move(held_days)).toBe((2 * days - 1) * 24);
    expect(move(held_days)).toBe(0);
    expect(ask("SELECT count(*) FROM index_ticks")).toEqual([[(days + 1) * 24]]);
    expect(ask("SELECT rows FROM stream_states WHERE stream = 'index_ticks'")).toEqual([[(days + 1) * 24]]);
    const reason = `moved to ${place}`;
    expect(
      ask("SELECT from_ts, to_ts, proof, reason FROM coverage WHERE stream = 'index_ticks' ORDER BY from_ts"),
    ).toEqual([
      [from, from + DAY, "rows", null],
      [from + DAY, from + days * DAY, "moved", reason],
      [monthStart(2), monthStart(2) + days * DAY, "moved", reason],
      [monthStart(0), monthStart(0) + days * DAY, "rows", null],
    ]);
    expect(bars()).toEqual(barsBefore);
    expect(gaps()).toEqual(gapsBefore);
    expectSoundFile(join(folder, "mds.sqlite"), Date.now());
    const asked = await runInProcess(
      [
        "gaps",
        "--series",
        "BTC",
        "--stream",
        "index_ticks",
        "--from",
        dayText(from),
        "--to",
        dayText(from + 2 * DAY),
      ],
      { cwd: folder, env: { MDS_WAREHOUSE: join(folder, "mds.sqlite") } },
    );
    expect(asked.status).toBe(0);
    expect(asked.stdout.replaceAll(/\s+/g, " ")).toContain(
      `Some of its index ticks are not in the warehouse: ${reason}.`,
    );
    // `verify` does not compare what is not here, and nothing asks the service for it.
    const { covered } = readSeriesCoverage(warehouse.connection, "index_ticks")[0] ?? {};
    expect(covered).toEqual([
      { from, to: from + DAY },
      { from: monthStart(0), to: monthStart(0) + days * DAY },
    ]);

    // The next export takes the moved rows over, beside what changed.
    await exportIn(folder, { moveBefore });
    const corrected = before.map((row) => {
      const [id, ts] = JSON.parse(row) as [string, number];
      return ts === from + HOUR ? JSON.stringify([id, ts, 7.5, null]) : row;
    });
    expect(await exported(place)).toEqual(corrected);
    const catalogue = (sql: string) => inCatalogue(join(place, "mds.duckdb"), sql);
    expect(await catalogue("SELECT count(*)::INTEGER, count(DISTINCT ts)::INTEGER FROM index_ticks")).toEqual(
      [[before.length, before.length]],
    );
    // There the rows are at hand: no reason.
    expect((await catalogue(ticksAndCoverage)).map(([id, , , proof, why]) => [id, proof, why])).toEqual(
      Array.from({ length: 3 }, () => ["btc", "rows", null]),
    );
    const { version } = await readSnapshot(join(place, "versions/index_ticks"));
    await exportIn(folder, { moveBefore });
    expect((await readSnapshot(join(place, "versions/index_ticks"))).version).toBe(version);
  });

  it("F21: are joined with rows of a series that was added later, and may leave again", async () => {
    const { folder, warehouse, place, move, ask, held_days: held } = exportedFolder();
    move(held);
    fill(warehouse, "eth", from);
    // A page whose last row lies in a moved range stores that row again.
    warehouse.transaction((t) =>
      writeRecords(t, "index_ticks", [tick(from + 30 * HOUR, "60030.25", { indexId: "btc" })], "rest"),
    );
    const { held_days } = await exportIn(folder, { moveBefore });
    const rows = await exported(place);
    expect(rows.length).toBe(4 * days * 24);
    expect(new Set(rows).size).toBe(rows.length);
    expect(move(held_days)).toBe(days * 24);
    await exportIn(folder, { moveBefore, since: monthStart(0) });
    await exportIn(folder, { moveBefore });
    expect(await exported(place)).toEqual(rows);
    expect(ask("SELECT count(*) FROM index_ticks")).toEqual([[days * 24 + 1]]);
    // A file of an earlier version stays too: nothing else has its rows.
    const manifest = join(place, "manifest.json");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace(/"columns": "\w+"/, '"columns": "older"'));
    await exportIn(folder);
    expect(await exported(place)).toEqual(rows);
  });

  it("F21: are not claimed by an export elsewhere, and missed where they were moved", async () => {
    const { folder, move, place, held_days } = exportedFolder();
    move(held_days);
    const elsewhere = join(folder, "elsewhere");
    await exportIn(folder, { to: elsewhere });
    const catalogue = (sql: string) => inCatalogue(join(elsewhere, "mds.duckdb"), sql);
    expect(await catalogue("SELECT count(*)::INTEGER FROM index_ticks")).toEqual([[days * 24]]);
    expect(
      await catalogue(
        "SELECT from_ts, to_ts FROM gaps WHERE stream = 'index_ticks' AND reason = 'not exported' ORDER BY 1",
      ),
    ).toEqual([from, monthStart(2)].map((start) => [String(start), String(start + days * DAY)]));
    // A copy of the export at another place has them.
    cpSync(place, join(folder, "copy"), { recursive: true });
    await exportIn(folder, { to: join(folder, "copy") });
    expect((await exported(join(folder, "copy"))).length).toBe(3 * days * 24);
    rmSync(place, { recursive: true });
    await expect(exportIn(folder)).rejects.toMatchObject({
      exit: 4,
      summary: expect.stringMatching(
        new RegExp(
          `has lost index_ticks of GWA ${month(3)}, which the warehouse moved there: bring the folder back`,
        ),
      ),
    });
  });
});
