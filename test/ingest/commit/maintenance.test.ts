import { describe, expect, it } from "vitest";
import { commitBlockedReason, commitTargets } from "../../../src/ingest/commit/targets.ts";
import { optimizeDatabase } from "../../../src/ingest/thread/operations.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import {
  hasNoContracts,
  readDueRechecks,
  recordNoContracts,
  recordRecheck,
} from "../../../src/warehouse/coverage/rechecks.ts";
import { readGaps } from "../../../src/warehouse/coverage/series-gaps.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { recordStreamHealth } from "../../../src/warehouse/rows/stream-stats.ts";
import { readSizeSamples, recordSize } from "../../../src/warehouse/tables/size-history.ts";
import {
  readJobRuns,
  readRequestRate,
  recordJobRun,
  recordRequestRate,
} from "../../../src/warehouse/tables/warehouse-state.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const noon = parseTs("2026-03-01T12:00:00Z");
const HOUR = 3600 * MICROS_PER_SECOND;
const MINUTE = 60 * MICROS_PER_SECOND;
const rules = { settleDelay: MINUTE, period: MINUTE / 2, step: 1, serviceWindow: 10 * MICROS_PER_DAY };
const key = { stream: "index_ticks", series: 1 } as const;

/** A warehouse whose only target is BTC's ticks since `from`. */
function openWithTarget() {
  const warehouse = openTestWarehouse();
  warehouse.transaction((t) =>
    commitTargets(t, {
      stream: "index_ticks",
      targets: [{ indexType: "GWA", indexId: "btc-id", from: noon - HOUR }],
      rules,
      unresolvedIndexTypes: [],
      at: noon,
    }),
  );
  return warehouse;
}

describe("the maintenance of the ledger", () => {
  it("shows why a gap cannot be filled, for every key, until the obstacle is gone", () => {
    const warehouse = openWithTarget();
    const other = { stream: "index_ticks", series: 99 } as const;
    const reason = () => readGaps(warehouse.connection, "index_ticks", noon)[0]?.blockedReason;
    warehouse.transaction((t) => commitBlockedReason(t, { keys: [other, key], reason: "forbidden" }));
    expect(reason()).toBe("forbidden");
    warehouse.transaction((t) => commitBlockedReason(t, { keys: [other], reason: null }));
    expect(reason()).toBe("forbidden");
    warehouse.transaction((t) => commitBlockedReason(t, { keys: [key], reason: null }));
    expect(reason()).toBeNull();
  });

  it("rechecks a series once a day", () => {
    const warehouse = openWithTarget();
    const due = (day: string) => readDueRechecks(warehouse.connection, "index_ticks", day).length;
    expect([due("2026-03-01"), due("2026-03-02")]).toEqual([0, 1]);
    warehouse.transaction((t) => recordRecheck(t, { key, day: "2026-03-02" }));
    expect([due("2026-03-02"), due("2026-03-03")]).toEqual([0, 1]);
  });

  it("remembers for a day that an exchange has no contracts of a type", () => {
    const warehouse = openWithTarget();
    const entry = { exchangeId: "kraken", derivativeType: "options", day: "2026-03-01" };
    expect(hasNoContracts(warehouse.connection, entry)).toBe(false);
    warehouse.transaction((t) => recordNoContracts(t, entry));
    expect(hasNoContracts(warehouse.connection, entry)).toBe(true);
    for (const other of [{ exchangeId: "okx" }, { derivativeType: "futures" }, { day: "2026-03-02" }])
      expect(hasNoContracts(warehouse.connection, { ...entry, ...other })).toBe(false);
  });
});

describe("the maintenance by the daemon", () => {
  it("stores for each stream what is wrong with it, and that it is healthy again", () => {
    const warehouse = openWithTarget();
    const health = (stream: string) => {
      const { streams } = readStatus(warehouse.connection, noon);
      const found = streams.find((each) => each.stream === stream);
      return [found?.last_error ?? null, found?.last_error_at ?? null, found?.missing_scopes];
    };
    warehouse.transaction((t) =>
      recordStreamHealth(t, [
        { stream: "index_ticks", error: "HTTP 500", missingScopes: [] },
        { stream: "ohlcv", error: null, missingScopes: ["read:ohlcv"] },
      ]),
    );
    expect(health("index_ticks")).toEqual(["HTTP 500", "2026-03-01T12:00:00.000000Z", []]);
    expect(health("ohlcv")).toEqual([null, null, ["read:ohlcv"]]);
    warehouse.transaction((t) =>
      recordStreamHealth(t, [{ stream: "index_ticks", error: null, missingScopes: [] }]),
    );
    expect(health("index_ticks")).toEqual([null, null, []]);
    expect(health("ohlcv")).toEqual([null, null, ["read:ohlcv"]]);
  });

  it("stores how fast a backfill was, how a job ended and how large the file was", () => {
    const warehouse = openWithTarget();
    warehouse.transaction((t) => recordJobRun(t, { job: "nightly", scheduledAt: 5, outcome: "ok" }));
    expect(readJobRuns(warehouse.connection)).toEqual([
      { job: "nightly", scheduledAt: 5, endedAt: "2026-03-01T12:00:00.000000Z", outcome: "ok" },
    ]);
    warehouse.transaction((t) => recordRequestRate(t, 12.5));
    expect(readRequestRate(warehouse.connection)).toBe(12.5);
    warehouse.transaction((t) => recordSize(t, 4096));
    expect(readSizeSamples(warehouse.connection)).toEqual([{ at: noon, bytes: 4096 }]);
  });

  it("refreshes the planner's statistics from a sample, and truncates the WAL", () => {
    const warehouse = openWithTarget();
    const pragmas: string[] = [];
    const { database } = warehouse.connection;
    const run = database.pragma.bind(database);
    database.pragma = (source, options) => {
      pragmas.push(source);
      return run(source, options);
    };
    expect(optimizeDatabase(warehouse)).toMatchObject({ walBytes: 0, isTruncated: true });
    // Without a limit, ANALYZE would read whole tables while every commit waits.
    expect(pragmas.slice(0, 2)).toEqual(["analysis_limit = 400", "optimize"]);
  });
});
