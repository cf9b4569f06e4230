import type { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { LiveEvents } from "../../src/dashboard/live-events.ts";
import type { CommitNews } from "../../src/model/answers/ticks.ts";
import { serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { commitPage, gap, onlyPage, startIngest } from "../support/ingest/ingest-harness.ts";
import { at, liveMessage, makeTicks, tickPage } from "../support/ingest/pages.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { timeLimit } from "../support/time-limit.ts";

/** Reads events until one has the name; returns its data. */
async function openEvents(address: string) {
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const response = await fetch(new URL("/api/events", address), { signal: gone.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const next = async (name: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const [, data, rest] = new RegExp(`^event: ${name}\ndata: (.*)\n\n([^]*)`, "m").exec(text) ?? [];
      if (data !== undefined) {
        text = rest ?? "";
        return JSON.parse(data) as Record<string, unknown>;
      }
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done) throw new Error("the stream has ended");
      text += value ?? "";
    }
  };
  return { next, type: response.headers.get("content-type"), close: () => gone.abort() };
}

describe("/api/events", () => {
  it("tells 50 pages what was committed without a read, and says that the daemon lives while nothing is", async () => {
    const clock = new ManualClock();
    let notify: (news: readonly CommitNews[]) => void = () => {};
    const { ingest, path, query } = await startIngest({ onCommit: (news) => notify(news) });
    const { address, countQueries, notifyCommit, failures } = await serveDashboard(path, clock);
    notify = notifyCommit;
    const pages = await Promise.all(Array.from({ length: 50 }, () => openEvents(address)));
    const hellos = await Promise.all(pages.map((page) => page.next("hello")));
    expect(hellos[0]).toMatchObject({ version: "0.1.0" });
    expect(pages[0]?.type).toBe("text/event-stream");
    const nextCommits = () => clock.runUntil(Promise.all(pages.map((page) => page.next("commit"))));

    await ingest.call("commitLiveMessages", [
      liveMessage({ ts: at("17:59:00"), price: "7.5" }),
      liveMessage({ ts: at("17:59:30"), price: "7.25" }),
    ]);
    const streams = ["index_ticks"];
    const ticks = [
      ["GWA", "btc-id", at("17:59:00"), 7.5],
      ["GWA", "btc-id", at("17:59:30"), 7.25],
    ];
    for (const news of await nextCommits())
      expect(news).toEqual({ streams, ticks, ranges: [], problem: null });

    await commitPage(ingest, onlyPage, tickPage(makeTicks(gap.from, gap.to)));
    const series = query("SELECT series FROM series WHERE index_id = 'btc-id'")[0]?.series;
    const rest = { streams, ticks: [], ranges: [[series, gap.from, gap.to]], problem: null };
    for (const news of await nextCommits()) expect(news).toEqual(rest);

    // While the feed is silent, the head that REST shows has the newest price.
    const head = { from: at("17:55:00"), to: at("17:58:00") };
    const position = { gap: head, provenFrom: head.to };
    const rows = makeTicks(head.from, head.to).map((row, i) => ({ ...row, price: `${8 - i / 4}` }));
    await commitPage(ingest, { ...onlyPage, isHead: true, position }, tickPage(rows));
    for (const { ticks } of await nextCommits())
      expect(ticks).toEqual([["GWA", "btc-id", at("17:57:30"), 8]]);

    expect(countQueries()).toBe(0);
    await clock.runUntil(Promise.all(pages.map((page) => page.next("idle"))));
    for (const page of pages) page.close();
    await expect
      .poll(() => clock.advance(1_000).then(() => clock.timerCount), { timeout: timeLimit(30_000) })
      .toBe(0);
    expect(failures).toEqual([]);
  });

  it("joins commits that follow one another closely", async () => {
    const clock = new ManualClock();
    let problem: string | undefined = "no useful answer";
    const live = new LiveEvents({ clock, version: "0", problem: () => problem });
    const tick = (ts: number) => ["GWA", "btc-id", ts, 1] as const;
    const streams = ["index_ticks" as const];
    const commit = (ts: number): CommitNews => ({ streams, ticks: [tick(ts)], ranges: [[1, ts, ts + 1]] });
    live.notify([commit(1)]);
    const body = live.open().body as Readable;
    let text = "";
    body.on("data", (chunk) => {
      text += String(chunk);
    });
    const received = () =>
      [...text.matchAll(/event: commit\ndata: (.*)/g)].map(([, data]) => JSON.parse(data ?? ""));
    await clock.advance(0);
    expect(text).toContain('"problem":"no useful answer"');
    problem = undefined;
    live.notify([commit(5)]);
    await clock.advance(99);
    live.notify([commit(3)]);
    expect(received()).toEqual([]);
    await clock.advance(1);
    const joined = { streams, ticks: [tick(5), tick(3)], ranges: [[1, 3, 6]], problem: null };
    expect(received()).toEqual([joined]);
    live.notify([commit(8)]);
    await clock.advance(100);
    expect(received()).toEqual([joined, { ...commit(8), problem: null }]);
    expect(text).not.toContain("event: idle");
    await clock.advance(5_000);
    expect(text).toContain("event: idle");
    body.destroy();
  });
});
