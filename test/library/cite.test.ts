import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Warehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp } from "../../src/model/time.ts";
import { withdrawRows } from "../../src/warehouse/rows/row-sql.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { fillSnapshots, MINUTE, SNAPSHOTS_FROM } from "../support/library/snapshot-series.ts";
import { withWarehouse as read } from "../support/library/with-warehouse.ts";
import { commitTo, createWarehouse, midnight } from "../support/warehouse/filled-warehouse.ts";
import { catchFailure } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { retract, settleAsLost } from "../support/warehouse/settle.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

const minute = (n: number) => formatTimestamp(SNAPSHOTS_FROM + n * MINUTE);
const [from, to] = [minute(0), minute(10)];

/** A second daemon, which met the series in another order, in other commits, and stored other things too. */
function createOther(): string {
  const path = createWarehouse((transaction) => {
    for (const id of ["eth-id", "uni-1"]) transaction.dictionary.getSeriesKey("GWA", id);
    transaction.dictionary.getListingKey("other-id", "btc-usd-id");
    writeTicks(transaction, [tick(SNAPSHOTS_FROM, "7", { indexId: "eth-id" })]);
  });
  commitTo(path, fillSnapshots);
  return path;
}

const keyOfBtc = (transaction: Transaction) =>
  ({ stream: "index_ticks", series: transaction.dictionary.getSeriesKey("GWA", "btc-id") }) as const;
const rangeOf = (n: number) => ({ from: SNAPSHOTS_FROM + n * MINUTE, to: SNAPSHOTS_FROM + (n + 1) * MINUTE });

/** The tick of minute 6 is corrected. */
const correct = (transaction: Transaction) => writeTicks(transaction, [tick(rangeOf(6).from, "406.5")]);

const citeTicks = (warehouse: Warehouse) => warehouse.cite("ticks", "BTC", { from, to });
const whole = { from, to };

describe("a citation", () => {
  it("has the SHA-256 of the lines that the documents describe", () => {
    const path = createWarehouse(fillSnapshots);
    const line = read(path, citeTicks);
    const lines = read(path, (warehouse) => warehouse.ticks("BTC", whole)).map(
      (row) => `GWA:btc-id,${row.ts},${row.price_exact},${row.volume_exact},\n`,
    );
    const sha256 = createHash("sha256").update(lines.join("")).digest("hex");
    const head = `^mds1 ticks BTC ids=GWA:btc-id source=ticks from=${from} to=${to} rows=9 complete=yes`;
    const pattern = `${head} sha256=${sha256} marks=\\w{36} state=\\S+@\\d+-\\w{12}$`;
    expect(line).toMatch(new RegExp(pattern));
  });

  const questions: Record<string, (warehouse: Warehouse) => string> = {
    ticks: citeTicks,
    "ticks of several": (w) => w.cite("ticks", ["BTC", "Kraken:BTC/USD", "cap:BTC"], whole),
    "ticks without bounds": (w) => w.cite("ticks", "BTC", { to }),
    funding: (w) => w.cite("ticks", "Kraken:BTCUSD-PERP", { ...whole, of: "funding" }),
    bars: (w) => w.cite("bars", ["BTC", "Kraken:BTC/USD"], { ...whole, every: "2m", of: "last" }),
    "bars of a zone": (w) => w.cite("bars", "BTC", { every: "1d", tz: "Asia/Kolkata" }),
    moments: (w) => w.cite("asOf", [minute(3), minute(8)], ["cap:BTC", "BTC"]),
    "a schedule": (w) => w.cite("asOf", { at: "00:03", from: from, to: to }, "BTC", { tz: "UTC" }),
  };
  it.each(Object.keys(questions))("of %s is equal where another daemon has synced", (name) => {
    const line = read(createWarehouse(fillSnapshots), questions[name] as (warehouse: Warehouse) => string);
    const other = createOther();
    const found = read(other, (warehouse) => warehouse.check(line));
    expect(found).toMatchObject({ equal: true, difference: null });
    const digest = (text: string) => /rows=.* marks=\S+/.exec(text)?.[0];
    expect(digest(read(other, questions[name] as never))).toBe(digest(line));
  });

  it("leaves out what is not over, which would change", () => {
    const path = createWarehouse(fillSnapshots);
    const today = formatTimestamp(midnight);
    for (const range of [{}, { to: "2100-01-01" }])
      expect(read(path, (w) => w.cite("bars", "BTC", { every: "1d", ...range }))).toContain(` to=${today} `);
    expect(read(path, (w) => w.cite("ticks", "BTC", { to: "2100-01-01" }))).not.toContain("2100");
  });

  it("tells the row that was corrected later, here and where another daemon has seen it", () => {
    const path = createWarehouse(fillSnapshots);
    const line = read(path, citeTicks);
    const ts = rangeOf(6).from;
    for (const file of [path, createOther()]) {
      commitTo(file, correct);
      const { equal, difference } = read(file, (warehouse) => warehouse.check(line));
      expect(equal).toBe(false);
      expect(difference).toMatchObject({
        ...{ name: "BTC", from_ts: ts, to_ts: ts + 1, reason: "corrected later" },
        ...{ cited: `${ts},406,1000.5,`, here: `${ts},406.5,1000.5,`, detail: expect.stringMatching(/Z$/) },
      });
      const bars = read(file, (warehouse) => warehouse.cite("bars", "BTC", { ...whole, every: "1m" }));
      expect(read(file, (warehouse) => warehouse.check(bars).equal)).toBe(true);
    }
    // The state that the line ends with still gives what was cited.
    const past = { ...whole, knownAt: line };
    const rows = read(path, (warehouse) => warehouse.ticks("BTC", past));
    expect(rows[5]?.price_exact).toBe("406");
    const [columns] = read(path, (warehouse) => warehouse.ticks("BTC", { ...past, as: "columns" }));
    expect([...(columns?.price ?? [])]).toEqual(rows.map(({ price }) => price));
    expect([...(columns?.ts ?? [])]).toEqual(rows.map(({ ts: time }) => BigInt(time)));
    const then = read(path, (warehouse) => warehouse.cite("ticks", "BTC", past));
    expect(then).toMatch(/ known-at=\S+Z rows=9 /);
    expect(read(path, (warehouse) => warehouse.check(then).equal)).toBe(true);
  });

  it("tells the row that the service has withdrawn, or that arrived later", () => {
    const path = createWarehouse(fillSnapshots);
    const before = read(path, citeTicks);
    commitTo(path, (transaction) => {
      transaction.markWritten("index_ticks", keyOfBtc(transaction).series);
      withdrawRows(transaction, keyOfBtc(transaction), [rangeOf(2).from]);
    });
    const after = read(path, citeTicks);
    const place = { from_time: minute(2), name: "BTC" };
    expect(read(path, (w) => w.check(before).difference)).toMatchObject({
      ...{ ...place, reason: "withdrawn later", here: null },
      cited: `${rangeOf(2).from},402,1000.5,`,
    });
    commitTo(path, (transaction) => writeTicks(transaction, [tick(rangeOf(2).from, "402")]));
    expect(read(path, (w) => w.check(before).equal)).toBe(true);
    expect(read(path, (w) => w.check(after).difference)).toMatchObject({
      ...{ ...place, reason: "arrived later", cited: null },
    });
  });

  it.each(["open", "lost"] as const)("tells what is %s in the warehouse that checks", (state) => {
    const line = read(createWarehouse(fillSnapshots), citeTicks);
    const other = createOther();
    commitTo(other, (transaction) => {
      const { series } = keyOfBtc(transaction);
      const sql = "DELETE FROM index_tick_rows WHERE series = ? AND ts = ?";
      transaction.statement(sql).run([series, rangeOf(7).from]);
      retract(transaction, keyOfBtc(transaction), rangeOf(7));
      if (state === "lost") settleAsLost(transaction, keyOfBtc(transaction), rangeOf(7), "aged out");
    });
    expect(read(other, (w) => w.check(line))).toMatchObject({
      ...{ equal: false, cited_rows: 9, rows: 8, is_complete: 0 },
      difference: {
        ...{ from_time: minute(7), to_time: minute(8), reason: `${state} here` },
        detail: state === "open" ? "pending" : "aged out",
      },
    });
  });

  it("tells where two answers of the service differ of which no ledger knows why", () => {
    const line = read(createWarehouse(fillSnapshots), citeTicks);
    const other = createOther();
    const sql = "UPDATE index_tick_rows SET price = 5 WHERE series = ? AND ts = ?";
    commitTo(other, (t) => t.statement(sql).run([keyOfBtc(t).series, rangeOf(6).from]));
    expect(read(other, (w) => w.check(line).difference)).toMatchObject({
      ...{ reason: "unknown", cited: null, here: `${rangeOf(6).from},5,1000.5,` },
      ...{ from_time: formatTimestamp(rangeOf(4).from + 1), to_time: formatTimestamp(rangeOf(6).from + 1) },
    });
  });

  it("is one line of the commands, and so is its check", async () => {
    const path = createWarehouse(fillSnapshots);
    const run = (...args: string[]) => runInProcess([...args, "--warehouse", path]);
    const range = ["--from", from, "--to", to, "--cite"];
    const lines: string[] = [];
    for (const args of [
      ["ticks", "Kraken:BTC/USD", "--of", "mid", ...range],
      ["bars", "BTC", "--every", "5m", ...range],
      ["asof", minute(4), "cap:BTC", "BTC", "--cite"],
      ["asof", "--at", "00:04", "BTC", ...range],
    ]) {
      const { stderr } = await run(...args);
      expect(stderr.match(/^mds-sync: cite: mds1 .*$/gm)).toHaveLength(1);
      lines.push(/^mds-sync: cite: (.*)$/m.exec(stderr)?.[1] ?? "");
    }
    for (const line of lines)
      for (const args of [[line], line.split(" "), [`mds-sync: cite: ${line}`]])
        expect(await run("check", ...args)).toMatchObject({
          status: 0,
          stdout: expect.stringMatching(/^equal: \d+ rows?, (not proven )?complete here\n$/),
        });
    commitTo(path, correct);
    const changed = await run("check", lines[1] ?? "");
    const told = "mds-sync: not equal: 2 rows are cited, 2 are here: the reason is on stdout\n";
    expect(changed).toMatchObject({ status: 4, stderr: told });
    expect(changed.stdout).toMatch(
      /^first difference: BTC \S+: corrected later \(\S+Z\); cited \d+,406,409,406,409,1000\.5,4; here \d+,406\.5,/,
    );
    const json = await run("check", lines[1] ?? "", "--json");
    const difference = { reason: "corrected later" };
    expect(JSON.parse(json.stdout)).toMatchObject({ equal: false, difference });
    const refusal = "mds-sync: that is no whole citation: give the line as --cite printed it, from mds1 on\n";
    const part = await run("check", "mds1", "ticks", "BTC", "rows=1");
    expect(part).toMatchObject({ status: 2, stderr: refusal });
    expect(await run("bars", "BTC", "--every", "1h", "--running", "--cite")).toMatchObject({ status: 2 });
  });

  it("is refused of moments that do not fit in a line", () => {
    const moments = Array.from({ length: 40 }, (_, n) => minute(n));
    const cite = () => read(createWarehouse(fillSnapshots), (w) => w.cite("asOf", moments, "BTC"));
    const refusal = "a citation has at most 32 moments: cite a part of them, or one a day with --at";
    expect(catchFailure(cite).summary).toBe(refusal);
  });
});
