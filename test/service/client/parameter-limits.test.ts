import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Failure } from "../../../src/model/failure.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient, readPage } from "../../support/service/client-harness.ts";
import {
  type StubService,
  sendGzip,
  sendJson,
  startStubService,
} from "../../support/service/stub-service.ts";

let clock: ManualClock;
const stubs: StubService[] = [];
beforeEach(() => {
  clock = new ManualClock("2026-03-01T12:00:00Z");
});
afterEach(async () => {
  for (const stub of stubs.splice(0)) await stub.stop();
});

type Query = Readonly<Record<string, string>>;

/** A service that answers 400 to the queries for which `objection` names a field; "" names none in its answer. */
async function startService(objection: (query: Query) => string | undefined) {
  const stub = await startStubService({
    clock,
    respond: ({ query }, response) => {
      const field = objection(query);
      if (field === undefined) sendGzip(response, { content: [] });
      else sendJson(response, { message: "no", errors: field === "" ? [] : [{ field, message: "no" }] }, 400);
    },
  });
  stubs.push(stub);
  const { client } = createTestClient(stub.baseUrl, clock);
  const send = (query: Record<string, string | number>) =>
    clock.runUntil(
      client.request({ endpoint: "/index-ticker", query }, readPage).then(
        () => undefined,
        (error: unknown) => (error as Failure).code,
      ),
    );
  const sent = (name: string) => stub.requests.splice(0).map(({ query }) => query[name]);
  return { send, sent };
}

const now = "2026-03-01T12:00:00.000Z";
const past = "2026-02-01T00:00:00.000Z";
const future = "2026-03-01T12:00:05.000Z";
const isFuture = ({ timestamp = "" }: Query) => Date.parse(timestamp) > clock.now();

describe("a service that refuses", () => {
  it.each(["timestamp", ""])("H12: the future (naming %j) is never asked for it again", async (named) => {
    const { send, sent } = await startService((query) => (isFuture(query) ? named : undefined));
    await send({ timestamp: now, size: 10 });
    sent("timestamp");
    expect(await send({ timestamp: future, size: 10 })).toBeUndefined();
    expect(sent("timestamp")).toEqual([future, "2026-03-01T11:59:59.000Z"]);
    expect(await send({ timestamp: future, size: 500 })).toBeUndefined();
    expect(await send({ timestamp: past, size: 500 })).toBeUndefined();
    expect(sent("timestamp")).toEqual(["2026-03-01T11:59:59.000Z", past]);
  });

  it.each(["size", ""])("H12: large pages (naming %j) is asked for the largest it accepts", async (named) => {
    const { send, sent } = await startService(({ size }) => (Number(size) > 600 ? named : undefined));
    expect(await send({ timestamp: past, size: 2000 })).toBeUndefined();
    expect(sent("size")).toEqual(["2000", "1000", "500"]);
    expect(await send({ timestamp: past, size: 2000 })).toBeUndefined();
    expect(await send({ timestamp: past, size: 20 })).toBeUndefined();
    expect(sent("size")).toEqual(["500", "20"]);
  });

  it("H12: large pages is asked for a size that it has accepted, if half of the size is less", async () => {
    const { send, sent } = await startService(({ size }) => (Number(size) > 150 ? "size" : undefined));
    expect(await send({ timestamp: past, size: 100 })).toBeUndefined();
    expect(await send({ timestamp: past, size: 199 })).toBeUndefined();
    expect(sent("size")).toEqual(["100", "199", "100"]);
  });

  it("H12: large pages and the future is asked for neither again", async () => {
    const { send, sent } = await startService((query) =>
      isFuture(query) || Number(query.size) > 600 ? "" : undefined,
    );
    expect(await send({ timestamp: future, size: 1000 })).toBeUndefined();
    expect(await send({ timestamp: future, size: 1000 })).toBeUndefined();
    sent("size");
    expect(await send({ timestamp: future, size: 1000 })).toBeUndefined();
    expect(sent("size")).toEqual(["500"]);
  });

  it("H12: one index is asked for it once, if it has accepted such pages before", async () => {
    const { send, sent } = await startService(({ indexId }) => (indexId === "fiat" ? "" : undefined));
    expect(await send({ timestamp: future, size: 2000, indexId: "btc" })).toBeUndefined();
    sent("size");
    expect(await send({ timestamp: future, size: 2000, indexId: "fiat" })).toBe("rejected");
    expect(sent("size")).toEqual(["2000"]);
    expect(await send({ timestamp: future, size: 2000, indexId: "btc" })).toBeUndefined();
    expect(sent("size")).toEqual(["2000"]);
  });

  it("H12: everything is asked twice for each further index: no parameter is the cause", async () => {
    const { send, sent } = await startService(() => "");
    expect(await send({ timestamp: future, size: 2000, indexId: "a" })).toBe("rejected");
    expect(sent("size").length).toBeLessThanOrEqual(10);
    for (const indexId of ["b", "c", "d"]) {
      expect(await send({ timestamp: future, size: 2000, indexId })).toBe("rejected");
      expect(sent("size")).toEqual(["2000", "10"]);
    }
  });

  it("H12: one index, then large pages of all others, is asked for the largest that it accepts", async () => {
    const { send, sent } = await startService(({ indexId, size }) =>
      indexId === "fiat" || Number(size) > 600 ? "" : undefined,
    );
    expect(await send({ timestamp: past, size: 2000, indexId: "fiat" })).toBe("rejected");
    sent("size");
    expect(await send({ timestamp: past, size: 2000, indexId: "btc" })).toBeUndefined();
    expect(sent("size")).toEqual(["2000", "10", "1000", "500"]);
  });

  it.each([
    ["timestamp", 0],
    ["", 2],
  ])("H12: the future (naming %j) from some day on is not asked for it again", async (named, lost) => {
    let isRefusing = false;
    const { send, sent } = await startService((query) => (isRefusing && isFuture(query) ? named : undefined));
    expect(await send({ timestamp: future, size: 10 })).toBeUndefined();
    isRefusing = true;
    for (let at = 0; at < lost; at++) expect(await send({ timestamp: future, size: 10 })).toBe("rejected");
    expect(await send({ timestamp: future, size: 10 })).toBeUndefined();
    sent("timestamp");
    expect(await send({ timestamp: future, size: 10 })).toBeUndefined();
    expect(sent("timestamp")).toEqual(["2026-03-01T11:59:59.000Z"]);
  });

  it("H12: everything is asked a bounded number of times, and nothing is learned from it", async () => {
    let isBroken = true;
    const { send, sent } = await startService(() => (isBroken ? "" : undefined));
    expect(await send({ timestamp: future, size: 2000 })).toBe("rejected");
    expect(sent("size").length).toBeLessThanOrEqual(10);
    isBroken = false;
    expect(await send({ timestamp: future, size: 2000 })).toBeUndefined();
    expect(sent("size")).toEqual(["2000"]);
  });
});
