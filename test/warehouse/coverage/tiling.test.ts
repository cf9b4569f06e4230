import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { NOT_FOUND } from "../../../src/rule/answer.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { auditLedger } from "../../../src/warehouse/audit/audit-ledger.ts";
import type { LedgerKey } from "../../../src/warehouse/coverage/ledger.ts";
import { storeClaim } from "../../../src/warehouse/coverage/pending-claims.ts";
import { recordPublication } from "../../../src/warehouse/coverage/publication.ts";
import { readRanges } from "../../../src/warehouse/coverage/series-gaps.ts";
import { endTarget, readPresentTs } from "../../../src/warehouse/coverage/targets.ts";
import { prune } from "../../../src/warehouse/rows/retention.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";

/** All times are in units, so that ends often coincide; in the long unit a nightly interval is twenty of them. */
const unit = fc.constantFrom(15 * MICROS_PER_SECOND, (26 * 3600 * MICROS_PER_SECOND) / 20);
const units = (min: number, max: number) => fc.integer({ min, max });

const settledRange = fc.record({
  age: units(-2, 30),
  length: units(1, 10),
  proof: fc.constantFrom("empty" as const, "lost" as const),
  reason: fc.constantFrom(NOT_FOUND, "no data"),
});

const target = fc.record({
  /** Each begins where the one before it ends, or a unit later. */
  targetLengths: fc.array(units(1, 20), { minLength: 1, maxLength: 2 }),
  isFollowed: fc.boolean(),
  settleDelay: units(0, 4),
  step: fc.constantFrom(1, 60 * MICROS_PER_SECOND),
  serviceWindow: fc.option(units(1, 30), { freq: 3 }),
  blockedReason: fc.constantFrom(null, null, "forbidden"),
  published: fc.option(
    fc.record({ to: units(0, 20), asked: units(0, 10), quietMargin: fc.constantFrom(0, 0, 3) }),
    { freq: 3 },
  ),
});

const claimKinds = ["withdrawn", "end moved", "end", "not found"] as const;

const series = fc.record({
  target: fc.option(target, { freq: 9 }),
  settled: fc.array(settledRange, { maxLength: 6 }),
  claims: fc.array(
    fc.record({
      kind: fc.constantFrom(...claimKinds),
      age: units(0, 30),
      length: units(1, 6),
      isAccepted: fc.boolean(),
    }),
    { maxLength: 2 },
  ),
});

const ledger = fc.record({
  unit,
  series: fc.array(series, { minLength: 1, maxLength: 2 }),
  /** By index; empty: of all. */
  liveSpans: fc.dictionary(
    fc.constantFrom("", "index 0", "index 1"),
    fc.record({ length: units(0, 20), silent: units(0, 5) }),
  ),
  late: fc.option(fc.record({ by: units(1, 8), age: units(0, 40) }), { freq: 3 }),
});

type Drawn = typeof ledger extends fc.Arbitrary<infer T> ? T : never;

function store(t: Transaction, drawn: Drawn, now: number): void {
  const ago = (age: number) => now - age * drawn.unit;
  const insertTarget = t.statement("INSERT INTO targets VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, 1)");
  for (const [at, { target, settled, claims }] of drawn.series.entries()) {
    const key = { stream: "index_ticks" as const, series: t.dictionary.getSeriesKey("GWA", `index ${at}`) };
    for (const { age, length, proof, reason } of settled)
      settle(t, key, { from: ago(age), to: ago(age - length) }, proof, reason);
    for (const { kind, age, length, isAccepted } of claims) {
      const counts = { subject: [], answers: 1, firstAt: 0, lastAt: 0, acceptedAt: isAccepted ? 0 : null };
      storeClaim(t, key, { kind, range: { from: ago(age), to: ago(age - length) }, ...counts }, 1);
    }
    if (!target) continue;
    let age = 30;
    for (const [at, length] of target.targetLengths.entries()) {
      const isLast = at === target.targetLengths.length - 1;
      const to = target.isFollowed && isLast ? null : ago(age - length);
      const window = target.serviceWindow === null ? null : target.serviceWindow * drawn.unit;
      const rules = [target.settleDelay * drawn.unit, target.step, window, target.blockedReason];
      insertTarget.run([key.stream, key.series, ago(age), to, ...rules]);
      age -= length + (length % 2);
    }
    if (target.published) {
      const { to, asked, quietMargin } = target.published;
      const page = { publishedTo: ago(to), askedAt: ago(asked), askedTo: ago(asked) };
      recordPublication(t, key, { ...page, quietMargin: quietMargin * drawn.unit });
    }
  }
  const insertSpan = t.statement("INSERT INTO live_spans VALUES ('index_ticks', 'GWA', ?, ?, ?)");
  for (const [indexId, { length, silent }] of Object.entries(drawn.liveSpans))
    insertSpan.run([indexId, ago(length + silent), ago(silent)]);
  if (drawn.late)
    t.statement(
      "INSERT INTO stream_states (stream, rows, missing_scopes, late_by, late_at) VALUES ('index_ticks', 0, '[]', ?, ?)",
    ).run([drawn.late.by * drawn.unit, ago(drawn.late.age)]);
}

const tables = "settled_ranges targets publications pending_claims live_spans stream_states";
const clearSql = tables.replaceAll(/\w+/g, "DELETE FROM $&;");

it("shows as gaps exactly what is neither settled nor outside a target, whatever the service has said", () => {
  const warehouse = openTestWarehouse();
  const { database } = warehouse.connection;
  fc.assert(
    fc.property(ledger, (drawn) => {
      database.exec(clearSql);
      const now = readPresentTs(warehouse.connection);
      warehouse.transaction((t) => store(t, drawn, now));
      const { findings } = auditLedger(warehouse.connection, now);
      expect(findings.filter(({ rule }) => rule === "tiling")).toEqual([]);
    }),
    { numRuns: 80 },
  );
});

it("keeps rows in doubt open, also where the service has once said not to have the index", () => {
  const warehouse = openTestWarehouse();
  const { database } = warehouse.connection;
  const now = readPresentTs(warehouse.connection);
  const [from, later] = [now - 10 * MICROS_PER_DAY, now - 3 * MICROS_PER_DAY];
  const claim = (kind: string, start: number) =>
    `INSERT INTO pending_claims (kind, stream, series, from_ts, to_ts, rows, subject, answers, first_at, last_at)
      VALUES ('${kind}', 'index_ticks', 1, ${start}, ${now}, 9, '[]', 1, ${now}, ${now});`;
  const read = () =>
    queryRows(warehouse, "SELECT DISTINCT state, reason FROM gaps WHERE reason <> 'settling'");
  database.exec(`INSERT INTO series VALUES (1, 'GWA', 'btc-id', 'BTC', NULL);
    INSERT INTO targets VALUES ('index_ticks', 1, ${from}, NULL, 60000000, 1, NULL, 0, NULL, 30000000);
    ${claim("not found", from)}`);
  expect(read()).toEqual([{ state: "unconfirmed", reason: "not found, unconfirmed" }]);
  database.exec(claim("withdrawn", later));
  expect(read()).toEqual([{ state: "open", reason: "withdrawal unconfirmed" }]);
});

const CADENCE = 30 * MICROS_PER_SECOND;

/** The rules of coverage and gaps that the ledger breaks: together they are exactly the targets. */
function findBrokenTiling({ connection }: WarehouseWriter) {
  return auditLedger(connection).findings.filter(({ rule }) => rule === "tiling");
}

describe("the ranges of snapshot streams", () => {
  it("tile their targets after random snapshots, losses, pruning, ends and restarts", () => {
    const step = fc.record({
      exchangeId: fc.constantFrom(null, "kraken", "bitstamp"),
      stream: fc.constantFrom("exchange_ticks" as const, "market_caps" as const),
      /** Early, on time, late, or after a pause. */
      after: fc.constantFrom(0.5, 1, 1, 1.001, 1.2, 40),
      act: fc.constantFrom("snapshot", "snapshot", "snapshot", "snapshot", "end", "prune"),
    });
    const warehouse = openTestWarehouse({ clock: systemClock });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        warehouse.connection.database.exec("DELETE FROM settled_ranges; DELETE FROM targets");
        const present = Math.floor(systemClock.now()) * 1_000;
        const length = steps.reduce((sum, { after }) => sum + after, 0);
        let at = present - Math.ceil(length * CADENCE);
        warehouse.transaction((transaction) => {
          for (const { stream, exchangeId, after, act } of steps) {
            at += Math.round(after * CADENCE);
            if (act === "snapshot") settleSnapshot(transaction, { stream, exchangeId, at, cadence: CADENCE });
            else if (act === "end") {
              const series = transaction.dictionary.getSubscriptionKey(exchangeId);
              endTarget(transaction, { stream, series }, at);
            } else prune(transaction, "exchange_ticks", at - 5 * CADENCE);
          }
        });
        expect(findBrokenTiling(warehouse)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it("are all read, however many there are", () => {
    const warehouse = openTestWarehouse({ clock: systemClock });
    const { connection } = warehouse;
    const count = 10_001;
    const start = readPresentTs(connection) - 2 * count * CADENCE;
    warehouse.transaction((t) => {
      settleSnapshot(t, { stream: "market_caps", exchangeId: null, at: start, cadence: CADENCE });
      const sql = `INSERT INTO settled_ranges WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        SELECT stream, series, from_ts + 2 * i * ?, to_ts + 2 * i * ?, proof, reason, since FROM settled_ranges, n`;
      t.statement(sql).run([count - 1, CADENCE, CADENCE]);
    });
    const [key] = connection.rows<LedgerKey>("SELECT stream, series FROM targets");
    const { stream, series } = key as LedgerKey;
    const span = { stream, first: series, last: series };
    const ranges = readRanges(connection, span, readPresentTs(connection)).get(series) ?? [];
    const states = Object.groupBy(ranges, ({ state }) => state);
    expect([states.covered?.length, states.lost?.length]).toEqual([count, count - 1]);
    expect(findBrokenTiling(warehouse)).toEqual([]);
  });
});
