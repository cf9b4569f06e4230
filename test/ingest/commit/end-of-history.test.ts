import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { startIngestInProcess } from "../../support/ingest/in-process-ingest.ts";
import { makeEmptyWarehouse } from "../../support/ingest/ingest-harness.ts";
import { at, btc, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";
import { ManualClock } from "../../support/manual-clock.ts";

async function startHarness() {
  const path = makeEmptyWarehouse();
  const clock = new ManualClock("2026-03-02T18:00:00Z");
  const ingest = await IngestThread.start({
    path,
    clock,
    log: silentLog,
    startWorker: startIngestInProcess,
  });
  onTestFinished(() => ingest.close());
  return {
    /** Selects the series from this timestamp on. */
    declareTarget: (from: number) =>
      ingest.call("commitTargets", {
        stream: btc.stream,
        targets: [{ ...btc, from }],
        rules: { settleDelay: 60 * SECOND, step: 1, serviceWindow: null },
        unresolvedIndexTypes: [],
        at: at("18:00:00"),
      }),
    /** Commits the only page of a walk. */
    async commit(gap: TimeRange, body: ResponseBody, windowStart?: number, emptyFrom?: number, answers = 3) {
      const { stream } = btc;
      const { pageId, nextId } = await ingest.call("readPage", { stream, series: btc }, [body]);
      return ingest.call("commitWalkPage", {
        pageId,
        series: btc,
        position: { gap: gap, provenFrom: gap.to },
        isLast: nextId === undefined,
        settleDelay: 60 * SECOND,
        cadence: 30 * SECOND,
        isHead: false,
        isSilenceConfirmed: false,
        quietMargin: 3600 * SECOND,
        request: "GET /index-ticker",
        emptyFrom,
        withdrawals: { answers, over: 0 },
        ...(windowStart === undefined ? {} : { windowStart: windowStart }),
      });
    },
    coverage() {
      const reader = new Database(path, { readonly: true });
      try {
        const sql = "SELECT from_ts, to_ts, proof, reason FROM coverage ORDER BY from_ts";
        return reader.prepare(sql).raw().all();
      } finally {
        reader.close();
      }
    },
  };
}

const [ten, eleven, twelve] = [at("10:00:00"), at("11:00:00"), at("12:00:00")];
const morning = { from: ten, to: eleven };
const noon = { from: eleven, to: twelve };

describe("a last page (the service has nothing older)", () => {
  it("settles down to the gap's start if nothing older is stored", async () => {
    const { commit, coverage } = await startHarness();
    expect(await commit(morning, tickPage([]))).toMatchObject({ isComplete: true });
    expect(coverage()).toEqual([[ten, eleven, "empty", "nothing older"]]);
    const later = makeTicks(at("11:30:00"), twelve);
    expect(await commit(noon, tickPage(later))).toMatchObject({ isComplete: true, hasReopened: false });
    expect(coverage()).toEqual([
      [ten, at("11:30:00"), "empty", "nothing older"],
      [at("11:30:00"), twelve, "rows", null],
    ]);
  });

  it("raises an alarm if older rows are stored within the window", async () => {
    const { commit, coverage } = await startHarness();
    await commit(morning, tickPage(makeTicks(ten, eleven)));
    const before = coverage();
    expect(await commit(noon, tickPage([]))).toMatchObject({ alarm: "false_end", isComplete: false });
    const half = makeTicks(at("11:30:00"), twelve);
    expect(await commit(noon, tickPage(half))).toMatchObject({ alarm: "false_end", isComplete: false });
    expect(coverage()).toEqual(before);
    expect(await commit(noon, tickPage(half), eleven)).toMatchObject({ alarm: undefined, isComplete: true });
  });

  it("is contradicted by an older record later: the empty range is open again", async () => {
    const { commit, coverage } = await startHarness();
    await commit(noon, tickPage([]));
    const older = [...makeTicks(ten - 30 * SECOND, eleven)];
    expect(await commit(morning, tickPage(older, "more"))).toMatchObject({
      isComplete: true,
      hasReopened: true,
    });
    expect(coverage()).toEqual([[ten, eleven, "rows", null]]);
  });

  it("H9: settles the rest of the target, if a second response confirmed it, until an older record appears", async () => {
    const { declareTarget, commit, coverage } = await startHarness();
    const [eight, nine] = [at("08:00:00"), at("09:00:00")];
    await declareTarget(eight);
    await commit(noon, tickPage(makeTicks(at("11:30:00"), twelve)), undefined, at("08:10:00"));
    expect(coverage()).toEqual([
      [at("08:10:00"), at("11:30:00"), "empty", "nothing older"],
      [at("11:30:00"), twelve, "rows", null],
    ]);
    const old = { from: nine, to: ten };
    const older = makeTicks(nine - 30 * SECOND, ten);
    expect(await commit(old, tickPage(older, "more"))).toMatchObject({ hasReopened: true });
    expect(coverage()).toEqual([
      [nine, ten, "rows", null],
      [at("11:30:00"), twelve, "rows", null],
    ]);
  });

  it("is not contradicted by newer records, and a gap between records stays settled", async () => {
    const { commit, coverage } = await startHarness();
    await commit(noon, tickPage(makeTicks(ten - 30 * SECOND, ten), "more"));
    expect(coverage()).toEqual([[eleven, twelve, "empty", "no records"]]);
    expect(
      await commit(morning, tickPage(makeTicks(ten - 60 * SECOND, at("10:30:00")), "more")),
    ).toMatchObject({
      hasReopened: false,
    });
    expect(coverage()).toHaveLength(2);
  });

  it("H14: gives up what is open below a moved end after enough answers, until an older record appears", async () => {
    const { declareTarget, commit, coverage } = await startHarness();
    const half = at("11:30:00");
    await declareTarget(at("09:00:00"));
    await commit(morning, tickPage(makeTicks(ten - 30 * SECOND, eleven), "more"));
    const before = coverage();
    const [rows, floor] = [makeTicks(half, twelve), at("08:00:00")];
    for (let answer = 1; answer <= 2; answer++) {
      expect(await commit(noon, tickPage(rows), undefined, floor)).toMatchObject({
        alarm: "false_end",
        unconfirmed: [{ from: eleven, to: half, rows: 121, answers: answer, believedAt: null }],
      });
      // Above its oldest record the page is like any other.
      expect(coverage()).toEqual([...before, [half + 1, twelve, "rows", null]]);
    }
    expect(await commit(noon, tickPage(rows), undefined, floor)).toMatchObject({
      alarm: undefined,
      isComplete: true,
      endsAt: half,
      movedEnd: { answers: 3 },
    });
    const given = [
      [at("09:00:00"), ten, "lost", "no longer served"],
      [ten, eleven, "rows", null],
      [eleven, half, "lost", "no longer served"],
      [half, twelve, "rows", null],
    ];
    expect(coverage()).toEqual(given);
    // A comparison of what is covered needs no answer, and changes nothing.
    expect(await commit(morning, tickPage([]), undefined, floor)).toMatchObject({
      alarm: undefined,
      isComplete: true,
      withdrawn: 0,
      endsAt: eleven,
      movedEnd: undefined,
    });
    expect(coverage()).toEqual(given);
    expect(await commit(noon, tickPage(makeTicks(ten, twelve), "more"))).toMatchObject({ hasReopened: true });
    expect(coverage()).toEqual([[ten, twelve, "rows", null]]);
  });

  it("H14: needs no claim where no record fits between the oldest one and the gap's start", async () => {
    const { commit, coverage } = await startHarness();
    await commit(morning, tickPage(makeTicks(ten, eleven)));
    const rows = [...makeTicks(eleven + 10 * SECOND, twelve), { ts: eleven + 20 * SECOND }];
    expect(await commit(noon, tickPage(rows))).toMatchObject({ alarm: undefined, isComplete: true });
    expect(coverage()).toEqual([[ten, twelve, "rows", null]]);
  });

  it("H14: rows that have just left the window stay", async () => {
    const { commit, coverage } = await startHarness();
    await commit(morning, tickPage(makeTicks(ten, eleven)));
    const later = makeTicks(at("10:05:00"), eleven);
    expect(await commit(morning, tickPage(later), at("10:10:00"))).toMatchObject({ withdrawn: 0 });
    expect(coverage()).toEqual([[ten, eleven, "rows", null]]);
  });
});
