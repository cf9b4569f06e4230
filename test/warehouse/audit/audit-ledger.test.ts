import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { auditLedger, repairLedger } from "../../../src/warehouse/audit/audit-ledger.ts";
import { computeStaleBars } from "../../../src/warehouse/rows/kept-bars.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { fill } from "../../support/warehouse/filled-warehouse.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";
import { settleAsLost } from "../../support/warehouse/settle.ts";

const now = parseTs("2026-03-01T12:00:00Z");
const SECOND = MICROS_PER_SECOND;
const HOUR = 3600 * SECOND;
const DAY = MICROS_PER_DAY;
const midnight = now - 12 * HOUR;

/** Ticks of two hours, then an hour without any, then an open head; older ranges are lost. Daily bars. A snapshot stream. */
function fillSoundly(): { warehouse: WarehouseWriter; series: number } {
  const warehouse = openTestWarehouse({ clock: new ManualClock("2026-03-01T12:00:00Z") });
  const series = warehouse.transaction((transaction) => {
    const rowsAt = (count: number, from: number, step: number) =>
      Array.from({ length: count }, (_, at) => ({ ts: from + at * step }));
    const firstDay = midnight - 30 * DAY;
    fill(transaction, {
      series: [
        {
          ...{ from: now - 300 * DAY, rows: rowsAt(240, now - 4 * HOUR, 30 * SECOND) },
          lost: [[now - 300 * DAY, now - 250 * DAY]],
          settled: [[now - 4 * HOUR, now - 2 * HOUR]],
          empty: [[now - 2 * HOUR, now - HOUR]],
        },
        { stream: "ohlcv", from: firstDay, rows: rowsAt(30, firstDay, DAY), settled: [[firstDay, midnight]] },
      ],
      records: { market_caps: [{ assetId: "btc-id", ts: now - HOUR }] },
      snapshots: [{ stream: "market_caps", at: now - HOUR, cadence: 300 * SECOND }],
    });
    return transaction.dictionary.getSeriesKey("GWA", "btc-id");
  });
  return { warehouse, series };
}

function audit({ connection }: WarehouseWriter) {
  const { findings, remarks } = auditLedger(connection, now);
  const brief = ({ rule, key, from, to }: (typeof findings)[number]) => [rule, key.stream, from, to];
  return { findings: findings.map(brief), remarks: remarks.map(brief) };
}

/** Writes into the file past the ledger's own guards, as a bug or another program would. */
function damage({ connection }: WarehouseWriter, sql: string, ...values: unknown[]): void {
  connection.database.prepare(sql).run(...values);
}

const insertRange =
  "INSERT INTO settled_ranges (stream, series, from_ts, to_ts, proof, reason) VALUES (?, ?, ?, ?, ?, ?)";

const insertTick = "INSERT INTO index_tick_rows (series, ts, price, volume, source) VALUES (?, ?, 1, 1, 0)";

describe("the audit of a sound ledger", () => {
  it("finds nothing", () => {
    const { warehouse } = fillSoundly();
    expect(audit(warehouse)).toEqual({ findings: [], remarks: [] });
    const { keyCount, rangeCount } = auditLedger(warehouse.connection, now);
    expect({ keyCount, rangeCount }).toEqual({ keyCount: 3, rangeCount: 5 });
  });

  it("changes nothing", () => {
    const { warehouse } = fillSoundly();
    const before = warehouse.connection.value<number>("SELECT total_changes()");
    audit(warehouse);
    expect(warehouse.connection.value("SELECT total_changes()")).toBe(before);
  });

  it("allows what retention and a 404 leave: lost ranges whose rows are gone or kept", () => {
    const { warehouse, series } = fillSoundly();
    warehouse.transaction((transaction) => {
      const key = { stream: "index_ticks", series } as const;
      settleAsLost(transaction, key, { from: now - 4 * HOUR, to: now - 3 * HOUR }, "not found");
    });
    expect(audit(warehouse).findings).toEqual([]);
  });

  it("allows a covered part between two rows, which a retraction may leave", () => {
    const { warehouse, series } = fillSoundly();
    const from = now - 50 * 60 * SECOND;
    damage(warehouse, insertRange, "index_ticks", series, from, from + 45 * SECOND, "rows", null);
    expect(audit(warehouse).findings).toEqual([]);
  });
});

describe("the audit of a damaged ledger", () => {
  const isolated = ["ohlcv", midnight - DAY, midnight] as const;
  type Damage = { damages: readonly (readonly [string, ...unknown[]])[]; found: unknown[][] };
  const damages: Record<string, Damage> = {
    "order: ranges that overlap": {
      damages: [[insertRange, "index_ticks", 1, now - 3 * HOUR, now - HOUR, "empty", "no records"]],
      found: [
        ["order", "index_ticks", now - 3 * HOUR, now - HOUR],
        ["order", "index_ticks", now - 2 * HOUR, now - HOUR],
      ],
    },
    "order: touching ranges that are not merged": {
      damages: [
        ["UPDATE settled_ranges SET to_ts = ? WHERE stream = 'ohlcv'", midnight - DAY],
        [insertRange, "ohlcv", 1, midnight - DAY, midnight, "rows", null],
      ],
      found: [["order", ...isolated]],
    },
    "order: ranges of a series without a name": {
      damages: [[insertRange, "ohlcv", 4711, midnight - DAY, midnight, "rows", null]],
      found: [["order", ...isolated]],
    },
    "order: a lost range without a reason": {
      damages: [["UPDATE settled_ranges SET reason = NULL WHERE proof = 'lost'"]],
      found: [["order", "index_ticks", now - 300 * DAY, now - 250 * DAY]],
    },
    "targets: targets that overlap": {
      damages: [
        [
          `INSERT INTO targets SELECT stream, series, ?, NULL, settle_delay, step, service_window, is_snapshot, blocked_reason, period
            FROM targets WHERE stream = 'index_ticks'`,
          now - DAY,
        ],
      ],
      found: [["targets", "index_ticks", now - DAY, now - DAY + 1]],
    },
    "row_in_empty: a row in an empty range, of ticks and of daily bars": {
      damages: [
        [insertTick, 1, now - 90 * 60 * SECOND],
        ["UPDATE settled_ranges SET proof = 'empty' WHERE stream = 'ohlcv'"],
      ],
      found: [
        ["row_in_empty", "index_ticks", now - 2 * HOUR, now - HOUR],
        ["kept_bars", "index_ticks", now - 2 * HOUR, now - HOUR],
        ["row_in_empty", "ohlcv", midnight - 30 * DAY, midnight],
      ],
    },
    "no_rows: a range covered as rows without any, of history and of snapshots": {
      damages: [["DELETE FROM index_tick_rows"], ["DELETE FROM market_cap_slots"]],
      found: [
        ["no_rows", "index_ticks", now - 4 * HOUR, now - 2 * HOUR],
        ["no_rows", "market_caps", now - HOUR, now - HOUR + 300 * SECOND],
      ],
    },
    "lost_in_reach: a range that was called aged out while the service had it": {
      damages: [["UPDATE settled_ranges SET to_ts = ? WHERE proof = 'lost'", now - 199 * DAY]],
      found: [["lost_in_reach", "index_ticks", now - 300 * DAY, now - 199 * DAY]],
    },
    "future: what is settled beyond the present": {
      damages: [["UPDATE settled_ranges SET to_ts = ? WHERE proof = 'empty'", now + HOUR]],
      found: [["future", "index_ticks", now, now + HOUR]],
    },
  };
  it.each(Object.entries(damages))("finds %s", (_, { damages: all, found }) => {
    const { warehouse } = fillSoundly();
    for (const [sql, ...values] of all) damage(warehouse, sql, ...values);
    expect(audit(warehouse)).toEqual({ findings: found, remarks: [] });
  });

  it("kept_bars: finds a bar of which one figure differs from its ticks", () => {
    const { warehouse } = fillSoundly();
    warehouse.transaction((transaction) => computeStaleBars(transaction, 100));
    expect(audit(warehouse).findings).toEqual([]);
    for (const column of ["open", "high", "low", "close", "volume_24h", "n_ticks", "n_doubtful"]) {
      damage(warehouse, `UPDATE kept_bars SET ${column} = ${column} + 1 WHERE ts = ?`, now - 3 * HOUR);
      const findings = [["kept_bars", "index_ticks", now - 3 * HOUR, now - 2 * HOUR]];
      expect(audit(warehouse).findings, column).toEqual(findings);
      damage(warehouse, `UPDATE kept_bars SET ${column} = ${column} - 1 WHERE ts = ?`, now - 3 * HOUR);
    }
  });

  it("kept_bars: finds hours with ticks that have no bar, and believes no stale one", () => {
    const { warehouse } = fillSoundly();
    damage(warehouse, "UPDATE kept_bars SET n_ticks = NULL, open = 77");
    expect(audit(warehouse).findings).toEqual([]);
    damage(warehouse, "DELETE FROM kept_bars");
    expect(audit(warehouse).findings).toEqual([["kept_bars", "index_ticks", now - 4 * HOUR, now - 2 * HOUR]]);
  });

  it("long_pause: remarks on a long time without rows inside a covered range", () => {
    const { warehouse, series } = fillSoundly();
    const [from, to] = [now - 4 * HOUR + 10 * 60 * SECOND, now - 2 * HOUR - 10 * 60 * SECOND];
    damage(warehouse, "DELETE FROM index_tick_rows WHERE series = ? AND ts > ? AND ts < ?", series, from, to);
    const midnight = (day: string) => Date.parse(day) * 1000;
    const days = [midnight("2026-02-01"), midnight("2026-02-27")];
    damage(warehouse, "DELETE FROM daily_bar_rows WHERE ts > ? AND ts < ?", ...days);
    expect(audit(warehouse)).toEqual({
      findings: [],
      remarks: [
        ["long_pause", "index_ticks", from, to],
        ["long_pause", "ohlcv", parseTs("2026-02-01T00:00:00Z"), parseTs("2026-02-27T00:00:00Z")],
      ],
    });
  });

  it("tiling: finds what a wrong view gaps leaves out, shows although it is covered, and shows twice", () => {
    const { warehouse } = fillSoundly();
    const view = warehouse.connection.value<string>("SELECT sql FROM sqlite_master WHERE name = 'gaps'");
    const replaceView = (change: (body: string) => string) => {
      warehouse.connection.database.exec("DROP VIEW gaps");
      const body = view.replace(/^CREATE VIEW\s+\S+\s+AS/i, "");
      warehouse.connection.database.exec(`CREATE VIEW "gaps" AS ${change(body)}`);
      return audit(warehouse).findings;
    };
    const head = [now - HOUR, now - 60 * SECOND];
    expect(
      replaceView((body) => `SELECT * FROM (${body}) WHERE stream <> 'index_ticks' OR from_ts <> ${head[0]}`),
    ).toEqual([["tiling", "index_ticks", ...head]]);
    const covered = `SELECT 'ohlcv', 'GWA', 'btc-id', 'BTC', ${midnight - DAY}, ${midnight}, '', '', 'open', 'pending', NULL`;
    expect(replaceView((body) => `SELECT * FROM (${body}) UNION ALL ${covered}`)).toEqual([
      ["tiling", "ohlcv", midnight - DAY, midnight],
    ]);
    const twice = `SELECT 'ohlcv', 'GWA', 'btc-id', 'BTC', ${midnight}, ${midnight + HOUR}, '', '', 'open', 'pending', NULL`;
    expect(replaceView((body) => `SELECT * FROM (${body}) UNION ALL ${twice}`)).toEqual([
      ["tiling", "ohlcv", midnight, midnight + HOUR],
    ]);
  });
});

describe("the repair of a damaged ledger", () => {
  it("takes back false claims alone, so that their ranges are open and the audit finds nothing more", () => {
    const { warehouse, series } = fillSoundly();
    const range = [midnight - 2 * DAY, midnight + HOUR];
    damage(warehouse, insertRange, "ohlcv", series, ...range, "empty", "no records");
    damage(warehouse, insertRange, "ohlcv", 4711, midnight - DAY, midnight, "rows", null);
    damage(warehouse, insertTick, series, now - 90 * 60 * SECOND);
    damage(warehouse, "UPDATE settled_ranges SET to_ts = ? WHERE proof = 'lost'", now - 199 * DAY);
    const { findings } = auditLedger(warehouse.connection, now);
    const repaired = warehouse.transaction((transaction) => repairLedger(transaction, findings));
    expect(repaired).toBe(findings.length);
    expect(audit(warehouse)).toEqual({ findings: [], remarks: [] });
    const left = queryRows(warehouse, "SELECT stream, proof, from_ts FROM settled_ranges ORDER BY stream");
    expect(left.map(Object.values)).toEqual([
      ["index_ticks", "rows", now - 4 * HOUR],
      ["market_caps", "rows", now - HOUR],
    ]);
  });
});
