import type { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { LiveEvents } from "../../src/dashboard/live-events.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { nowTs, openFilledWarehouse } from "../support/dashboard/filled-warehouse.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { timeLimit } from "../support/time-limit.ts";
import { tick } from "../support/warehouse/records.ts";

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
  it("tells 50 pages of a commit with one read, and says that the daemon lives while nothing is committed", async () => {
    const clock = new ManualClock();
    const warehouse = openFilledWarehouse();
    const { address, countQueries, failures } = await serveDashboard(warehouse.path, clock);
    const pages = await Promise.all(Array.from({ length: 50 }, () => openEvents(address)));
    const hellos = await Promise.all(pages.map((page) => page.next("hello")));
    expect(hellos[0]).toMatchObject({ version: "0.1.0" });
    expect(pages[0]?.type).toBe("text/event-stream");
    const nextCommits = () => clock.runUntil(Promise.all(pages.map((page) => page.next("commit"))));
    expect((await nextCommits())[0]).toMatchObject({ ticks: [], rows: { index_ticks: expect.any(Number) } });

    warehouse.transaction((transaction) =>
      writeRecords(
        transaction,
        "index_ticks",
        [tick(nowTs, "7.5", { indexType: "GWA", indexId: "BTC-id" })],
        "live",
      ),
    );
    for (const { ticks } of await nextCommits()) expect(ticks).toEqual([["GWA", "BTC-id", nowTs, 7.5]]);
    // One read of the warehouse a second, not one per page.
    expect(countQueries()).toBeLessThan(20);
    await clock.runUntil(Promise.all(pages.map((page) => page.next("idle"))));

    for (const page of pages) page.close();
    await expect
      .poll(() => clock.advance(1_000).then(() => clock.timerCount), { timeout: timeLimit(30_000) })
      .toBe(0);
    expect(failures).toEqual([]);
  });

  it("reads as soon as the daemon has committed, once for commits that follow one another closely", async () => {
    const clock = new ManualClock();
    const queries: string[] = [];
    const reader = {
      query: async (kind: string) => {
        queries.push(kind);
        return { time: "", rows: {}, ticks: [] };
      },
    };
    const live = new LiveEvents({ reader: reader as never, clock, version: "0", startedAt: 0 });
    live.notify();
    await clock.advance(5_000);
    expect(queries).toEqual([]);
    const { body } = live.open();
    await clock.advance(300);
    expect(queries).toHaveLength(0);
    live.notify();
    live.notify();
    await clock.advance(100);
    expect(queries).toHaveLength(1);
    live.notify();
    await clock.advance(99);
    expect(queries).toHaveLength(1);
    await clock.advance(1);
    expect(queries).toHaveLength(2);
    // Without a signal it looks every second.
    await clock.advance(1_000);
    expect(queries).toHaveLength(3);
    (body as Readable).destroy();
  });
});
