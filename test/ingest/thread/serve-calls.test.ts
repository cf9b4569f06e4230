import { MessageChannel } from "node:worker_threads";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import type { WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import {
  type IngestCalls,
  type IngestNotices,
  type IngestReply,
  transferListOf,
} from "../../../src/ingest/thread/messages.ts";
import { serveCalls } from "../../../src/ingest/thread/serve-calls.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { Channel } from "../../../src/runtime/thread-channel.ts";
import { coverageSql, gap, makeEmptyWarehouse, onlyPage } from "../../support/ingest/ingest-harness.ts";
import { at, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";

/** Serves calls in this thread, so that a test decides which of them wait together. */
async function startServing() {
  const path = makeEmptyWarehouse();
  const { port1: server, port2: client } = new MessageChannel();
  const stopFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  serveCalls(stopFlag, server);
  const ingest = new Channel<IngestCalls, IngestNotices>({
    port: client,
    bugCode: "ingest_bug",
    handlers: { upgrade: () => {} },
  });
  /** Sends all calls before any of them is served, and returns the replies in the order of arrival. */
  async function call(...calls: (readonly [operation: string, args: unknown, body?: ResponseBody])[]) {
    const replies: (IngestReply & { readonly operation: string })[] = [];
    await Promise.all(
      calls.map(async ([operation, args, body]) => {
        const bodies = body ? [body] : [];
        const sent = {
          operation,
          args,
          bodies,
          isFirst: true,
          now: at("18:00:00"),
          machineNow: at("18:00:00"),
        };
        replies.push({ operation, ...(await ingest.call("run", sent, transferListOf(bodies))) });
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
  });
  return { call, query, stopFlag };
}

/** A page of an hour that ends at `to`, and the call that commits it. */
function hourBefore(to: number, pageId: number) {
  const slice = { from: to - 3600 * SECOND, to };
  const page: WalkPage = {
    ...onlyPage,
    pageId,
    position: { gap: slice, provenFrom: slice.to },
    isLast: false,
  };
  return { slice, page };
}

const hours = [gap.to, gap.to - 3600 * SECOND, gap.to - 7200 * SECOND].map((to, i) => hourBefore(to, i + 1));
const commits = hours.map(({ page }) => ["commitWalkPage", page] as const);
const whole = [
  { from_time: "2026-03-01T09:00:00.000000Z", to_time: "2026-03-01T12:00:00.000000Z", proof: "rows" },
];

async function readHours(call: Awaited<ReturnType<typeof startServing>>["call"]): Promise<void> {
  for (const { slice } of hours) {
    const body = tickPage(makeTicks(slice.from - 30 * SECOND, slice.to), "more");
    await call(["readPage", { stream: "index_ticks", series: onlyPage.series }, body]);
  }
}

describe("pages that wait together", () => {
  it("are committed before a call of another kind that came after them", async () => {
    const { call } = await startServing();
    await readHours(call);
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
    await readHours(call);
    const unknown = { ...onlyPage, pageId: 99 };
    const replies = await call(...commits, ["commitWalkPage", unknown]);
    expect(replies.filter((reply) => "value" in reply)).toHaveLength(3);
    expect(replies.find((reply) => "failure" in reply)).toMatchObject({
      failure: { code: "page_forgotten" },
    });
    expect(query(coverageSql)).toEqual(whole);
  });

  it("are rejected unrun once the thread stops", async () => {
    const { call, query, stopFlag } = await startServing();
    await readHours(call);
    stopFlag[0] = 1;
    const replies = await call(...commits);
    expect(replies).toMatchObject(hours.map(() => ({ failure: { code: "stopped" } })));
    expect(query(coverageSql)).toEqual([]);
  });
});
