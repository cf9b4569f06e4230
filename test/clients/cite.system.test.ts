import { describe, expect, it } from "vitest";
import { openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp } from "../../src/model/time.ts";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";
import { fillSnapshots, MINUTE, SNAPSHOTS_FROM } from "../support/library/snapshot-series.ts";
import { fillTicks, getStart } from "../support/library/ticks-warehouse.ts";
import { commitTo, createWarehouse } from "../support/warehouse/filled-warehouse.ts";
import { decimal, tick } from "../support/warehouse/records.ts";
import { retract } from "../support/warehouse/settle.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

const hasPandas = hasModules("pandas", "citations in Python");

/** Evaluates Python expressions on a warehouse `w`. */
function ask(path: string, ...asked: readonly string[]): unknown[] {
  const script = `
import json, sys, mds
w = mds.open(sys.argv[1])
print(json.dumps([eval(each) for each in sys.argv[2:]]))
`;
  return JSON.parse(runPython(script, [path, ...asked])) as unknown[];
}

const checkInPython = (path: string, lines: readonly string[]) =>
  ask(path, ...lines.map((line) => `w.check(${JSON.stringify(line)})`));

const minute = (n: number) => formatTimestamp(SNAPSHOTS_FROM + n * MINUTE);
const [from, to] = [minute(0), minute(10)];
const bounds = `"${from}", "${to}"`;
const whole = { from, to };

const several = ["BTC", "Kraken:BTC/USD", "cap:BTC"];
const questions: readonly (readonly [string, (warehouse: Warehouse) => string])[] = [
  [`w.cite("ticks", "BTC", ${bounds})`, (w) => w.cite("ticks", "BTC", whole)],
  [`w.cite("ticks", ${JSON.stringify(several)}, ${bounds})`, (w) => w.cite("ticks", several, whole)],
  [
    `w.cite("ticks", "Kraken:BTC/USD", ${bounds}, of="mid")`,
    (w) => w.cite("ticks", "Kraken:BTC/USD", { ...whole, of: "mid" }),
  ],
  [
    `w.cite("bars", "Kraken:BTCUSD-PERP", "2m", ${bounds}, of="funding")`,
    (w) => w.cite("bars", "Kraken:BTCUSD-PERP", { ...whole, every: "2m", of: "funding" }),
  ],
  [
    `w.cite("bars", "BTC", "1h", tz="Asia/Kolkata")`,
    (w) => w.cite("bars", "BTC", { every: "1h", tz: "Asia/Kolkata" }),
  ],
  [
    `w.cite("asof", ["${minute(3)}", "${minute(5)}"], ["cap:BTC", "BTC"])`,
    (w) => w.cite("asOf", [minute(3), minute(5)], ["cap:BTC", "BTC"]),
  ],
  [
    `w.cite("asof", series="BTC", at="00:03", start="${from}", end="${to}", tz="UTC")`,
    (w) => w.cite("asOf", { at: "00:03", from, to }, "BTC", { tz: "UTC" }),
  ],
];

const withoutState = (line: string) => line.replace(/ state=.*/, "");

describe.runIf(hasPandas)("a citation in Python", () => {
  it("is the same line as in TypeScript, and each checks the other's", () => {
    const path = createWarehouse(fillSnapshots, { hasAllViews: true });
    using warehouse = openWarehouse(path);
    const lines = questions.map(([, cite]) => cite(warehouse));
    const found = ask(path, ...questions.map(([asked]) => asked)) as string[];
    expect(found.map(withoutState)).toEqual(lines.map(withoutState));
    for (const line of found) expect(warehouse.check(line)).toMatchObject({ equal: true });
    const checks = checkInPython(path, lines);
    expect(checks).toEqual(
      lines.map((line) => ({ ...warehouse.check(line), is_complete: expect.any(Boolean) })),
    );
  });

  it("has every digit, and daily bars", () => {
    const path = createWarehouse(fillTicks, { hasAllViews: true });
    using warehouse = openWarehouse(path);
    const range = { from: formatTimestamp(getStart()), to: formatTimestamp(getStart() + 3 * 60 * MINUTE) };
    const lines = [
      warehouse.cite("ticks", "BTC", range),
      warehouse.cite("bars", "BTC", { ...range, every: "7m" }),
      warehouse.cite("bars", "BTC", { ...range, every: "1h" }),
      warehouse.cite("bars", "BTC/USD", { every: "2d" }),
      warehouse.cite("asOf", range.from, ["BTC/USD", "BTC"]),
    ];
    for (const check of checkInPython(path, lines)) expect(check).toMatchObject({ equal: true });
  });

  it("tells the same first difference as TypeScript", () => {
    const create = () => createWarehouse(fillSnapshots, { hasAllViews: true });
    const [path, other, third] = [create(), create(), create()];
    const lines = (() => {
      using w = openWarehouse(path);
      return [w.cite("ticks", "BTC", whole), w.cite("bars", "BTC", { ...whole, every: "5m" })];
    })();
    const corrected = tick(SNAPSHOTS_FROM + 6 * MINUTE, "406.5", { volume: decimal("1000.5") });
    commitTo(path, (transaction) => writeTicks(transaction, [corrected]));
    commitTo(other, (transaction) => {
      const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
      const ts = SNAPSHOTS_FROM + 7 * MINUTE;
      transaction.statement("DELETE FROM index_tick_rows WHERE series = ? AND ts = ?").run([series, ts]);
      retract(transaction, { stream: "index_ticks", series }, { from: ts, to: ts + MINUTE });
    });
    commitTo(third, (transaction) => {
      const values = [transaction.dictionary.getSeriesKey("GWA", "btc-id"), SNAPSHOTS_FROM + 6 * MINUTE];
      transaction.statement("UPDATE index_tick_rows SET price = 5 WHERE series = ? AND ts = ?").run(values);
    });
    for (const [file, reason] of [
      [path, "corrected later"],
      [other, "open here"],
      [third, "unknown"],
    ] as const) {
      using warehouse = openWarehouse(file);
      const asked = file === path ? lines : lines.slice(0, 1);
      const checks = checkInPython(file, asked);
      for (const [at, line] of asked.entries()) {
        const expected = warehouse.check(line);
        expect(expected.difference?.reason).toBe(reason);
        expect(checks[at]).toEqual({ ...expected, is_complete: expected.is_complete === 1 });
      }
    }
    const [token] = ask(
      path,
      `[str(x) for x in w.ticks("BTC", ${bounds}, exact=True, known_at=${JSON.stringify(lines[0])}).price_exact][5]`,
    );
    expect(token).toBe("406");
  });
});
