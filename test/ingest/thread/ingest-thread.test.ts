import { describe, expect, it } from "vitest";
import { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import type { Failure } from "../../../src/model/failure.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import {
  commitPage,
  coverageSql,
  gap,
  makeEmptyWarehouse,
  onlyPage,
  startIngest,
  startIngestThread,
  wholeCoverage,
} from "../../support/ingest/ingest-harness.ts";
import { at, liveMessage, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("a page of a walk", () => {
  it("is committed with its proven range, and any SQLite tool can read the rows", async () => {
    const { ingest, query } = await startIngest();
    const rows = makeTicks(at("11:00:00"), at("12:00:00"));
    const first = await commitPage(ingest, onlyPage, tickPage(rows, "more"));
    expect(first).toMatchObject({ rows: 120, written: { inserted: 120 }, nextId: "more" });
    expect(first).toMatchObject({ isComplete: false, alarm: undefined });
    expect(first.proven).toEqual({ from: at("11:00:00") + 1, to: gap.to });

    const position = { gap: gap, provenFrom: first.proven?.from ?? 0 };
    const rest = tickPage(makeTicks(at("09:59:00"), at("11:00:00")));
    const second = await commitPage(ingest, { ...onlyPage, position }, rest);
    expect(second).toMatchObject({ isComplete: true, alarm: undefined });
    expect(query(coverageSql)).toEqual(wholeCoverage);
    const counts = query("SELECT count(*) AS rows, sum(is_settled) AS settled FROM index_ticks");
    expect(counts).toEqual([{ rows: 242, settled: 240 }]);
    const sql = "SELECT time, price, price_exact, volume_exact FROM index_ticks ORDER BY ts DESC LIMIT 1";
    const newest = ["2026-03-01T11:59:30.000000Z", 60370, "60370", "12.5"];
    expect(query(sql).map(Object.values)).toEqual([newest]);
  });

  it("does not end a walk because of a stray record from 1970", async () => {
    const { ingest } = await startIngest();
    const rows = [...makeTicks(at("11:00:00"), gap.to), { ts: 0 }];
    const commit = await commitPage(ingest, onlyPage, tickPage(rows, "more"));
    expect(commit).toMatchObject({ isComplete: false, oldest: at("11:00:00") });
  });
});

it("a machine whose clock is wrong loses no row and proves no wrong range", async () => {
  const { ingest, query, clock } = await startIngest();
  clock.stepWallClock(Date.parse("2027-01-01T00:00:00Z") - clock.now());
  const body = { ...tickPage(makeTicks(gap.from, gap.to)), asOf: at("18:00:00") / 1000 };
  expect(await commitPage(ingest, onlyPage, body)).toMatchObject({ withdrawn: 0, isComplete: true });
  expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 240 }]);
  expect(query(coverageSql)).toEqual(wholeCoverage);
});

it("live ticks are stored unsettled; REST settles and corrects them, and withdraws one that it never had", async () => {
  const { ingest, query } = await startIngest();
  const rows = makeTicks(at("11:50:00"), gap.to);
  const phantom = { ts: at("11:55:10") };
  const messages = [...rows, phantom].map((row) =>
    liveMessage(row.ts === at("11:51:00") ? { ...row, price: "7" } : row),
  );
  const others = ['{"event":"TRADE","id":1}', "garbage"];
  const live = await ingest.call("commitLiveMessages", [...messages, ...others]);
  expect(live).toMatchObject({ indexTicks: { inserted: 21 }, unknownEvents: 2, newest: at("11:59:30") });
  expect(query("SELECT sum(is_settled) AS settled FROM index_ticks")).toEqual([{ settled: 0 }]);
  expect(query("SELECT name, count FROM unknown_events ORDER BY 1")).toEqual([
    { name: "(none)", count: 1 },
    { name: "TRADE", count: 1 },
  ]);

  await commitPage(ingest, onlyPage, tickPage(rows));
  expect(query("SELECT count(*) AS rows, sum(is_settled) AS settled FROM index_ticks")).toEqual([
    { rows: 20, settled: 20 },
  ]);
  expect(query("SELECT price_exact FROM index_ticks WHERE time LIKE '%11:51:00%'")).toEqual([
    { price_exact: "60860" },
  ]);
  expect(query("SELECT count(*) AS revisions, sum(after IS NULL) AS withdrawn FROM revisions")).toEqual([
    { revisions: 2, withdrawn: 1 },
  ]);
});

/** A list of market caps with one timestamp, in periods of a minute. */
const list = (listed: number, time: string) => {
  const timestamps = [at(time)];
  const parts = [{ part: "", listed, rejected: 0, timestamps, storedTimestamps: timestamps }];
  const polled = { askedAt: at(time) + SECOND, answeredAt: at(time) + SECOND };
  return { stream: "market_caps", exchangeId: null, cadence: 60 * SECOND, parts, ...polled } as const;
};

it("a snapshot is compared with the one before, also after a restart", async () => {
  const first = await startIngest();
  expect(await first.ingest.call("commitSnapshotCoverage", list(100, "17:50:00"))).toBeUndefined();
  await first.ingest.close();
  const second = await startIngest({ path: first.path });
  expect(await second.ingest.call("commitSnapshotCoverage", list(49, "17:51:00"))).toBe("shrunken");
  await second.ingest.close();
  // A repeated answer counts once, and only after a while.
  const { ingest, query, clock } = await startIngest({ path: first.path });
  expect(await ingest.call("commitSnapshotCoverage", list(49, "17:51:00"))).toBe("shrunken");
  await clock.advance(20_000);
  expect(await ingest.call("commitSnapshotCoverage", list(49, "17:52:00"))).toBeUndefined();
  expect(query(coverageSql)).toMatchObject([{ to_time: "2026-03-01T17:53:00.000000Z", proof: "rows" }]);
});

describe("the thread", () => {
  it("rejects a second writer with one line and exit code 75", async () => {
    const { path } = await startIngestThread();
    const second = new IngestThread({ path, clock: new ManualClock(), log: silentLog }).start();
    const failure = (await second.catch((error: unknown) => error)) as Failure;
    expect(failure).toMatchObject({ name: "Failure", exit: 75 });
    expect(failure.summary).not.toContain("\n");
  });

  it("makes callers wait when the queue is full, and runs all calls in order", async () => {
    const { ingest, query } = await startIngestThread();
    const pings = Array.from({ length: 40 }, () => ingest.call("ping", undefined));
    expect(ingest.queuedCalls).toBe(6);
    const commits = Array.from({ length: 40 }, (_, i) => {
      const from = gap.from + i * 180 * SECOND;
      const slice = { from, to: from + 180 * SECOND };
      const page = { ...onlyPage, position: { gap: slice, provenFrom: slice.to } };
      return commitPage(ingest, page, tickPage(makeTicks(slice.from - 30 * SECOND, slice.to), "more"));
    });
    await Promise.all([...pings, ...commits]);
    expect(query(coverageSql)).toEqual(wholeCoverage);
  });
});

describe("stale bars", () => {
  const stale = "SELECT count(*) AS n FROM kept_bars WHERE n_ticks IS NULL";
  const bars = "SELECT ts, open, high, low, close, n_ticks, coverage, quality FROM bars_1h ORDER BY ts";

  /** Until only so many are left. */
  async function computed(ingest: IngestThread, query: (sql: string) => unknown[], left: number) {
    const isLeft = () => JSON.stringify(query(stale)) === JSON.stringify([{ n: left }]);
    for (let turn = 0; turn < 200 && !isLeft(); turn++) await ingest.call("ping", undefined);
    expect(query(stale)).toEqual([{ n: left }]);
  }

  it("are right at once, and computed between two calls after some commits", async () => {
    const { ingest, query } = await startIngest({ path: makeEmptyWarehouse({ hasAllViews: true }) });
    // So that the opening's own turn is over.
    for (let commit = 0; commit < 20; commit++) await ingest.call("commitClockSkew", 0);
    await commitPage(ingest, onlyPage, tickPage(makeTicks(at("10:20:00"), gap.to)));
    const before = query(bars);
    expect(before).toHaveLength(2);
    expect(query(stale)).toEqual([{ n: 2 }]);
    for (let commit = 0; commit < 50; commit++) await ingest.call("commitClockSkew", 0);
    await computed(ingest, query, 0);
    expect(query(bars)).toEqual(before);
  });

  it("that the last process left are computed after a start, except those of an hour that is not over", async () => {
    const first = await startIngest({ path: makeEmptyWarehouse({ hasAllViews: true }) });
    await commitPage(first.ingest, onlyPage, tickPage(makeTicks(at("10:20:00"), gap.to)));
    await first.ingest.call("commitLiveMessages", [liveMessage({ ts: at("18:00:00") })]);
    await first.ingest.close();
    const { ingest, query } = await startIngest({ path: first.path });
    await computed(ingest, query, 1);
    expect(query(bars)).toHaveLength(3);
  });
});
