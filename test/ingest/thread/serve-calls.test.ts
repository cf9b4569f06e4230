import { MessageChannel } from "node:worker_threads";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { readPage } from "../../../src/ingest/decode/read-page.ts";
import type {
  IngestCalls,
  IngestNotices,
  IngestReply,
  PageMessage,
  WalkPageCall,
} from "../../../src/ingest/thread/messages.ts";
import { serveCalls } from "../../../src/ingest/thread/serve-calls.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { Channel } from "../../../src/runtime/thread.ts";
import { coverageSql, gap, makeEmptyWarehouse, onlyPage } from "../../support/ingest/ingest-harness.ts";
import { at, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";

/** Serves calls in this thread, so that a test decides which of them wait together. */
async function startServing() {
  const path = makeEmptyWarehouse();
  const { port1: server, port2: client } = new MessageChannel();
  const stopFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const pages = new MessageChannel();
  serveCalls({ stopFlag, pages: pages.port1 }, server);
  const ingest = new Channel<IngestCalls, IngestNotices>({
    port: client,
    bugCode: "ingest_bug",
    handlers: { upgrade: () => {} },
  });
  /** Sends all calls before any of them is served, and returns the replies in the order of arrival. */
  async function call(...calls: (readonly [operation: string, args: unknown])[]) {
    const replies: (IngestReply & { readonly operation: string })[] = [];
    await Promise.all(
      calls.map(async ([operation, args]) => {
        const now = at("18:00:00");
        const sent = { operation, args, isOrdered: true, isFirst: true, now, machineNow: now };
        replies.push({ operation, ...(await ingest.call("run", sent)) });
      }),
    );
    return replies;
  }
  const query = (sql: string) => {
    const database = new Database(path, { readonly: true });
    try {
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  };
  await call(["open", { path, mayDeferCheck: false }]);
  onTestFinished(async () => {
    await call(["close", { isSuspect: false }]);
    client.close();
    pages.port2.close();
  });
  hours.forEach(({ from, to }, at) => {
    const body = tickPage(makeTicks(from - 30 * SECOND, to), "more");
    const { page } = readPage({ stream: "index_ticks", series: onlyPage.series }, body);
    pages.port2.postMessage({ reader: 1, number: at + 1, page } satisfies PageMessage);
  });
  return { call, query, stopFlag };
}

const hours = [0, 1, 2].map((n) => ({
  from: gap.to - (n + 1) * 3600 * SECOND,
  to: gap.to - n * 3600 * SECOND,
}));
const toCall = (hour: TimeRange, number: number): WalkPageCall => ({
  ...{ ...onlyPage, isLast: false, position: { gap: hour, provenFrom: hour.to } },
  ...{ reader: 1, number },
});
const commits = hours.map((hour, at) => ["commitWalkPage", toCall(hour, at + 1)] as const);
const whole = [
  { from_time: "2026-03-01T09:00:00.000000Z", to_time: "2026-03-01T12:00:00.000000Z", proof: "rows" },
];

describe("pages that wait together", () => {
  it("are committed before a call of another kind that came after them", async () => {
    const { call } = await startServing();
    const replies = await call(...commits.slice(0, 2), ["commitClockSkew", 5_000], ...commits.slice(2));
    expect(replies.map(({ operation }) => operation)).toEqual([
      "commitWalkPage",
      "commitWalkPage",
      "commitClockSkew",
      "commitWalkPage",
    ]);
    expect(replies.every((reply) => "value" in reply)).toBe(true);
  });

  it("do not fail because one of them does", async () => {
    const { call, query } = await startServing();
    const replies = await call(...commits, ["commitWalkPage", toCall(gap, 99)]);
    expect(replies.filter((reply) => "value" in reply)).toHaveLength(3);
    expect(replies.find((reply) => "failure" in reply)).toMatchObject({ failure: { code: "ingest_bug" } });
    expect(query(coverageSql)).toEqual(whole);
  });

  it("are rejected unrun once the thread stops", async () => {
    const { call, query, stopFlag } = await startServing();
    stopFlag[0] = 1;
    const replies = await call(...commits);
    expect(replies).toMatchObject(hours.map(() => ({ failure: { code: "stopped" } })));
    expect(query(coverageSql)).toEqual([]);
  });
});
