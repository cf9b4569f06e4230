import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { at, btc, pageOf, SECOND, ticks } from "../../support/ingest/pages.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

async function start() {
  const path = join(temporaryFolder(), "mds.sqlite");
  const clock = new ManualClock("2026-03-01T18:00:00Z");
  const ingest = await IngestThread.start({ path, clock, log: silentLog });
  onTestFinished(() => ingest.close());
  return {
    /** A page that is the only one of its walk. */
    async commit(hole: TimeRange, body: ResponseBody, servedFrom?: number) {
      const { stream } = btc;
      const { pageId: held, nextId } = await ingest.call("readPage", { stream, series: btc }, [body]);
      return ingest.call("commitWalkPage", {
        pageId: held,
        series: btc,
        position: { gap: hole, provenFrom: hole.to },
        isLast: nextId === undefined,
        settleDelay: 60 * SECOND,
        request: "GET /index-ticker",
        ...(servedFrom === undefined ? {} : { windowStart: servedFrom }),
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

describe("a service that says it has nothing older", () => {
  it("is believed where nothing older was ever seen", async () => {
    const { commit, coverage } = await start();
    expect(await commit(morning, pageOf([]))).toMatchObject({ isComplete: true });
    expect(coverage()).toEqual([[ten, eleven, "empty", "nothing older"]]);
    const later = ticks(at("11:30:00"), twelve);
    expect(await commit(noon, pageOf(later))).toMatchObject({ isComplete: true, hasReopened: false });
    expect(coverage()).toEqual([
      [ten, at("11:30:00"), "empty", "nothing older"],
      [at("11:30:00"), twelve, "rows", null],
    ]);
  });

  it("is not believed where it has served older records, unless they have left its window since", async () => {
    const { commit, coverage } = await start();
    await commit(morning, pageOf(ticks(ten, eleven)));
    const before = coverage();
    expect(await commit(noon, pageOf([]))).toMatchObject({ alarm: "false_end", isComplete: false });
    const half = ticks(at("11:30:00"), twelve);
    expect(await commit(noon, pageOf(half))).toMatchObject({ alarm: "false_end", isComplete: false });
    expect(coverage()).toEqual(before);
    expect(await commit(noon, pageOf(half), eleven)).toMatchObject({ alarm: undefined, isComplete: true });
  });

  it("is refuted by an older record: what it called empty is open again", async () => {
    const { commit, coverage } = await start();
    await commit(noon, pageOf([]));
    const older = [...ticks(ten - 30 * SECOND, eleven)];
    expect(await commit(morning, pageOf(older, "more"))).toMatchObject({ isComplete: true, hasReopened: true });
    expect(coverage()).toEqual([[ten, eleven, "rows", null]]);
  });

  it("is not refuted by newer records, nor is a hole between records ever in doubt", async () => {
    const { commit, coverage } = await start();
    await commit(noon, pageOf(ticks(ten - 30 * SECOND, ten), "more"));
    expect(coverage()).toEqual([[eleven, twelve, "empty", "no records"]]);
    expect(await commit(morning, pageOf(ticks(ten - 60 * SECOND, at("10:30:00")), "more"))).toMatchObject({
      hasReopened: false,
    });
    expect(coverage()).toHaveLength(2);
  });
});
