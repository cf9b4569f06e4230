import fc from "fast-check";
import { expect, it } from "vitest";
import { formatTimestamp, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { forEachHistoryRange } from "../../../src/warehouse/coverage/history-gaps.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import {
  beginLiveSpans,
  clearLiveSpans,
  extendLiveSpans,
} from "../../../src/warehouse/coverage/live-spans.ts";
import { NOT_FOUND_REASON } from "../../../src/warehouse/coverage/not-found.ts";
import { recordHeadPage } from "../../../src/warehouse/coverage/publication.ts";
import { readPresentTs } from "../../../src/warehouse/coverage/targets.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";

const seconds = (min: number, max: number) =>
  fc.integer({ min, max }).map((count) => count * MICROS_PER_SECOND);

const settledRange = fc.record({
  age: seconds(-20, 900),
  length: seconds(1, 300),
  proof: fc.constantFrom("empty" as const, "lost" as const),
  reason: fc.constantFrom(NOT_FOUND_REASON, "no data"),
});

const ledger = fc.record({
  /** Each begins where the one before it ends, or a second later. */
  targetLengths: fc.array(seconds(1, 600), { maxLength: 2 }),
  isFollowed: fc.boolean(),
  settleDelay: seconds(0, 120),
  step: fc.constantFrom(1, 60 * MICROS_PER_SECOND),
  serviceWindow: fc.option(seconds(1, 800)),
  hindrance: fc.option(fc.constant("forbidden")),
  settled: fc.array(settledRange, { maxLength: 6 }),
  live: fc.option(fc.record({ age: seconds(0, 600), silent: seconds(0, 300), isOfAll: fc.boolean() })),
  withdrawn: fc.option(
    fc.record({ age: seconds(0, 900), length: seconds(1, 200), isBelieved: fc.boolean() }),
  ),
  published: fc.option(
    fc.record({ to: seconds(0, 500), asked: seconds(0, 300), quietMargin: fc.constantFrom(0, 90_000_000) }),
  ),
});

it("reads the gaps of history streams in one pass as the view shows them", () => {
  const warehouse = openTestWarehouse();
  const { database } = warehouse.connection;
  fc.assert(
    fc.property(ledger, (drawn) => {
      database.exec(
        "DELETE FROM settled_ranges; DELETE FROM wanted_ranges; DELETE FROM publications; DELETE FROM mass_withdrawals",
      );
      const now = readPresentTs(warehouse.connection);
      warehouse.transaction((t) => {
        clearLiveSpans(t);
        const series = t.dictionary.getSeriesKey("GWA", "btc-id");
        const key = { stream: "index_ticks" as const, series };
        for (const { age, length, proof, reason } of drawn.settled)
          settle(t, key, { from: now - age, to: now - age + length }, proof, reason);
        const insert = t.statement("INSERT INTO wanted_ranges VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)");
        let from = now - 900 * MICROS_PER_SECOND;
        const targets = drawn.targetLengths.map((length) => {
          const target = { from, to: from + length };
          from = target.to + ((length / MICROS_PER_SECOND) % 2) * MICROS_PER_SECOND;
          return target;
        });
        for (const [at, { from, to }] of targets.entries()) {
          const end = drawn.isFollowed && at === targets.length - 1 ? null : to;
          const { settleDelay, step, serviceWindow, hindrance } = drawn;
          insert.run(["index_ticks", series, from, end, settleDelay, step, serviceWindow, hindrance]);
        }
        if (drawn.live) {
          const { age, silent, isOfAll } = drawn.live;
          beginLiveSpans(t, [
            { indexType: "GWA", indexId: isOfAll ? undefined : "btc-id", from: now - age - silent },
          ]);
          extendLiveSpans(t, "GWA", now - silent);
        }
        if (drawn.withdrawn) {
          const { age, length, isBelieved } = drawn.withdrawn;
          t.statement(
            `INSERT INTO mass_withdrawals (stream, series, from_ts, to_ts, rows, digest, answers, first_at, last_at, believed_at)
            VALUES (?, ?, ?, ?, 1, '', 1, 0, 0, ?)`,
          ).run(["index_ticks", series, now - age, now - age + length, isBelieved ? 0 : null]);
        }
        if (drawn.published) {
          const { to, asked, quietMargin } = drawn.published;
          const askedTo = now - asked;
          recordHeadPage(t, key, { publishedTo: now - to, askedAt: askedTo, askedTo, quietMargin });
        }
      });
      const shown = queryRows(
        warehouse,
        `SELECT from_ts AS "from", to_ts AS "to", CASE reason WHEN 'settling' THEN reason ELSE state END AS state, reason,
          lost_at AS lostAt FROM gaps ORDER BY from_ts`,
      );
      const read: Record<string, unknown>[] = [];
      forEachHistoryRange(warehouse.connection, (_key, { lostAt, ...range }) => {
        if (range.state !== "covered")
          read.push({ ...range, lostAt: lostAt === null ? null : formatTimestamp(lostAt) });
      });
      // The view reads its own clock: repeat the run if the second changed meanwhile.
      fc.pre(readPresentTs(warehouse.connection) === now);
      expect(read.sort((a, b) => Number(a.from) - Number(b.from))).toEqual(shown);
    }),
    { numRuns: 200 },
  );
});
