import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import type { ClaimKind, PendingClaim } from "../../../src/rule/answer.ts";
import {
  dropClaims,
  dropPendingClaims,
  readClaims,
  readPendingClaims,
  readReportedWithdrawals,
  storeClaim,
} from "../../../src/warehouse/coverage/pending-claims.ts";
import { readGaps } from "../../../src/warehouse/coverage/series-gaps.ts";
import { DELAY, gapsOf, HOUR, key, openTarget, present } from "../../support/warehouse/gaps.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const now = parseTs("2026-03-01T12:00:00Z");
const first = parseTs("2026-03-01T11:00:00Z");

type Key = { readonly stream: "index_ticks"; readonly series: number };

function openSeries() {
  const warehouse = openTestWarehouse();
  const { connection } = warehouse;
  const keyOf = (id: string): Key =>
    warehouse.transaction((t) => ({ stream: "index_ticks", series: t.dictionary.getSeriesKey("GWA", id) }));
  const [btc, eth] = [keyOf("btc"), keyOf("eth")];
  const store = (key: Key, kind: ClaimKind, from: number, to: number, more: Partial<PendingClaim> = {}) =>
    warehouse.transaction((t) => {
      const counts = { subject: [], answers: 2, firstAt: first, lastAt: now, acceptedAt: null, ...more };
      return storeClaim(t, key, { kind, range: { from, to }, ...counts }, 7);
    });
  const rangesOf = (key: Key) => readClaims(connection, key).map(({ range: { from, to } }) => [from, to]);
  return { warehouse, connection, btc, eth, store, rangesOf };
}

describe("the claims of a series", () => {
  it("have what was answered, when, and about which rows: several thousand of them", () => {
    const { connection, btc, eth, store } = openSeries();
    const subject = Array.from({ length: 5000 }, (_, i) => first + i);
    const stored = store(btc, "withdrawn", 10, 20, { subject });
    const counts = { answers: 2, firstAt: first, lastAt: now, acceptedAt: null, rows: 7, subject };
    expect(stored).toEqual({ kind: "withdrawn", claim: 1, range: { from: 10, to: 20 }, ...counts });
    store(btc, "end", 0, 10, { acceptedAt: now });
    expect(readClaims(connection, btc)).toEqual([
      stored,
      expect.objectContaining({ kind: "end", claim: 2, acceptedAt: now, subject: [] }),
    ]);
    expect([readClaims(connection, eth), readClaims(connection, { ...btc, series: 99 })]).toEqual([[], []]);
  });

  it("are dropped one by one, or when they leave the service's window", () => {
    const { warehouse, btc, eth, store, rangesOf } = openSeries();
    for (const key of [btc, eth]) store(key, "withdrawn", 10, 20);
    const dropped = store(btc, "end", 0, 5);
    for (const to of [30, 31]) store(btc, "withdrawn", 15, to);
    store(btc, "end moved", 10, 20, { acceptedAt: now });
    warehouse.transaction((t) => dropClaims(t, [dropped]));
    expect(rangesOf(btc)).toHaveLength(4);
    warehouse.transaction((t) => dropPendingClaims(t, btc, 30));
    // What is accepted stays, if a later answer depends on it, and what the service may still repeat.
    expect(rangesOf(btc)).toEqual([
      [15, 31],
      [10, 20],
    ]);
    expect(rangesOf(eth)).toEqual([[10, 20]]);
  });

  it("are listed by series for a whole stream, while they are pending", () => {
    const { connection, btc, eth, store } = openSeries();
    store(eth, "not found", 5, 6);
    for (const from of [30, 10]) store(btc, "withdrawn", from, from + 10);
    store(btc, "end", 50, 60);
    store(btc, "withdrawn", 70, 80, { acceptedAt: now });
    const found = readPendingClaims(connection, "index_ticks");
    expect(found.get(btc.series)?.map(({ range }) => range.from)).toEqual([10, 30, 50]);
    expect(found.get(eth.series)).toMatchObject([{ kind: "not found", range: { from: 5, to: 6 } }]);
    expect(readPendingClaims(connection, "ohlcv")).toEqual(new Map());
  });
});

describe("a pending claim", () => {
  const rest = ["open", "pending", -720, -3];
  it.each<[kind: ClaimKind, gaps: unknown[]]>([
    ["withdrawn", [["open", "withdrawal unconfirmed", -1800, -3]]],
    ["end moved", [["open", "withdrawal unconfirmed", -1800, -3]]],
    // Nothing is older, however far below: only what is above the end is to be fetched.
    ["end", [["unconfirmed", "end unconfirmed", -1800, -720], rest]],
    // The next nightly run asks for the index again: until then there is nothing of it to fetch.
    ["not found", [["unconfirmed", "not found, unconfirmed", -1800, -3]]],
  ])("%s decides the state and the reason of its gap, until it is accepted", (kind, gaps) => {
    const gapsWith = (acceptedAt: number | null) => {
      const warehouse = openTarget(present - 10 * HOUR);
      const range = { from: present - 5 * HOUR, to: present - 4 * HOUR };
      const counts = { subject: [], answers: 2, firstAt: first, lastAt: now, acceptedAt };
      warehouse.transaction((t) => storeClaim(t, key, { kind, range, ...counts }, 7));
      return gapsOf(warehouse);
    };
    const head = ["unconfirmed", "settling", -3, 0];
    expect(gapsWith(null)).toEqual([...gaps, head]);
    expect(gapsWith(now)).toEqual([["open", "pending", -1800, -3], head]);
  });

  it("of records that do not exist is no missing range; one against stored rows is", () => {
    const warehouse = openTarget(present - 10 * HOUR);
    const ago = (hours: number) => present - hours * HOUR;
    warehouse.transaction((t) => {
      const counts = { subject: [], answers: 1, firstAt: first, lastAt: now };
      const store = (kind: ClaimKind, from: number, to: number, acceptedAt: number | null = null) =>
        storeClaim(t, key, { kind, range: { from: ago(from), to: ago(to) }, ...counts, acceptedAt }, 7);
      // Only the part of it that is open counts.
      store("end", 12, 8);
      store("withdrawn", 6, 5);
      store("not found", 4, 3, now);
    });
    for (const series of [undefined, 1]) {
      const [gaps] = readGaps(warehouse.connection, "index_ticks", present, series);
      const end = present - DELAY;
      expect(gaps).toMatchObject({
        open: [{ from: ago(10), to: end }],
        missing: [{ from: ago(8), to: end }],
        unconfirmed: [{ from: ago(10), to: ago(8) }],
        claims: [{ kind: "end" }, { kind: "withdrawn" }],
      });
    }
  });

  it("against stored rows is reported until it is accepted, and a withdrawal a week longer", () => {
    const { connection, btc, eth, store } = openSeries();
    store(eth, "withdrawn", now, now + 1_000_000);
    store(btc, "withdrawn", first, first + 1_000_000, { acceptedAt: now });
    store(btc, "end moved", first, first + 1_000_000);
    store(eth, "end moved", first, first + 1_000_000, { acceptedAt: now });
    // These contradict no row.
    store(eth, "end", 0, 1);
    store(eth, "not found", 0, 1);
    const report = (at: number) => readReportedWithdrawals(connection, at);
    expect(report(now)).toEqual([
      {
        ...{ stream: "index_ticks", index_type: "GWA", index_id: "eth", name: "eth", rows: 7, answers: 2 },
        ...{ from_time: "2026-03-01T12:00:00.000000Z", to_time: "2026-03-01T12:00:01.000000Z" },
        ...{ first_seen: "2026-03-01T11:00:00.000000Z", believed_at: null },
      },
      expect.objectContaining({ index_id: "btc", believed_at: "2026-03-01T12:00:00.000000Z" }),
      expect.objectContaining({ index_id: "btc", believed_at: null }),
    ]);
    expect(report(now + 7 * MICROS_PER_DAY - 1)).toHaveLength(3);
    expect(report(now + 7 * MICROS_PER_DAY).map((row) => row.believed_at)).toEqual([null, null]);
  });
});
