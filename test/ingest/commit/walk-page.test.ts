import { describe, expect, it } from "vitest";
import {
  commitPage,
  coverageSql,
  gap,
  onlyPage,
  startIngestThread,
  wholeCoverage,
} from "../../support/ingest/ingest-harness.ts";
import { at, liveMessage, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";

describe("a page with records from the future", () => {
  it("H11: proves its range, even if most of its records are from the future", async () => {
    const { ingest, query } = await startIngestThread();
    const ahead = makeTicks(at("13:00:00"), at("16:00:00"));
    const page = { ...tickPage([...ahead, ...makeTicks(gap.from, gap.to)]), asOf: at("12:02:00") / 1000 };
    expect(await commitPage(ingest, onlyPage, page)).toMatchObject({
      rejected: ahead.length,
      alarm: undefined,
      isComplete: true,
    });
    expect(query(coverageSql)).toEqual(wholeCoverage);
    expect(query("SELECT max(time) AS newest FROM index_ticks")).toEqual([
      { newest: "2026-03-01T11:59:30.000000Z" },
    ]);
    // One period ahead is not the future: a record may be stamped at the end of its period.
    const head = { from: gap.to, to: at("13:00:00") };
    const next = { ...tickPage([{ ts: at("13:05:00") }]), asOf: at("13:00:00") / 1000 };
    await commitPage(ingest, { ...onlyPage, position: { gap: head, provenFrom: head.to } }, next);
    expect(query("SELECT count(*) AS n FROM index_ticks WHERE time LIKE '%13:05:00%'")).toEqual([{ n: 1 }]);
  });
});

describe("a page that has a live tick at a slightly other moment", () => {
  it("H4: replaces the preview, and withdraws a second one into revisions", async () => {
    const { ingest, query } = await startIngestThread();
    const [tick] = makeTicks(at("11:00:00"), at("11:00:30"));
    if (!tick) throw new Error("no tick");
    const live = [{ ts: tick.ts + 137_000 }, { ts: tick.ts + 3 * SECOND }];
    await ingest.call("commitLiveMessages", live.map(liveMessage));
    const commit = await commitPage(ingest, onlyPage, tickPage(makeTicks(gap.from, gap.to)));
    expect(commit).toMatchObject({ isComplete: true, withdrawn: 1, learnedOffset: 137_000 });
    expect(query("SELECT ts FROM revisions")).toEqual([{ ts: tick.ts + 3 * SECOND }]);
    expect(query("SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 240 }]);
  });

  it("H4: tells the offset once, and forgets it when the websocket agrees with REST", async () => {
    const { ingest, query } = await startIngestThread();
    const offset = () => query("SELECT live_offset FROM stream_states")[0]?.live_offset;
    const confirm = async (from: string, to: string, skew: number) => {
      const range = { from: at(from), to: at(to) };
      const ticks = makeTicks(range.from, range.to);
      await ingest.call(
        "commitLiveMessages",
        ticks.map(({ ts }) => liveMessage({ ts: ts + skew })),
      );
      const position = { gap: range, provenFrom: range.to };
      const below = makeTicks(range.from - 60 * SECOND, range.to);
      return commitPage(ingest, { ...onlyPage, position }, tickPage(below, "more"));
    };
    expect(await confirm("10:00:00", "10:10:00", 137_000)).toMatchObject({ learnedOffset: 137_000 });
    expect(await confirm("10:10:00", "10:20:00", 150_000)).toMatchObject({ learnedOffset: undefined });
    expect(offset()).toBe(137_000);
    expect(await confirm("10:20:00", "10:30:00", 0)).toMatchObject({ learnedOffset: undefined });
    expect(offset()).toBeNull();
    expect(query("SELECT * FROM revisions")).toEqual([]);
  });
});

describe("an unconfirmed withdrawal", () => {
  it("H5: ends when its range leaves the window, or the index is not found", async () => {
    for (const end of ["aged out", "not found"]) {
      const { ingest, query } = await startIngestThread();
      const rows = makeTicks(gap.from, gap.to);
      await commitPage(ingest, onlyPage, tickPage(rows));
      const commit = await commitPage(ingest, onlyPage, tickPage(rows.toSpliced(100, 100)));
      expect(commit).toMatchObject({ unconfirmed: [{ rows: 100 }] });
      const key = { stream: "index_ticks", series: 1 } as const;
      if (end === "aged out") {
        const names = { indexType: "GWA", indexId: "btc-id", name: "BTC" };
        const lost = {
          key,
          ...names,
          open: [],
          missing: [],
          unpublished: [],
          agedOut: [gap],
          serviceWindow: 1,
          blockedReason: null,
        };
        await ingest.call("commitLostRanges", [lost]);
      } else await ingest.call("commitIndexNotFound", { key, range: gap });
      expect(query("SELECT * FROM mass_withdrawals")).toEqual([]);
    }
  });
});
