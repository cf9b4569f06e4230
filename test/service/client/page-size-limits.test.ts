import { describe, expect, it } from "vitest";
import { startServedClient } from "../../support/service/client-harness.ts";
import { reply, sendJson } from "../../support/service/stub-service.ts";

type Query = Readonly<Record<string, string>>;

/** A service that answers 400 to the queries for which `objection` names a field; "" names none in its answer. */
async function startService(objection: (query: Query) => string | undefined) {
  const { stub, codeOf } = await startServedClient({
    respond: ({ query }, response) => {
      const field = objection(query);
      if (field === undefined) reply(response);
      else sendJson(response, { message: "no", errors: field === "" ? [] : [{ field, message: "no" }] }, 400);
    },
  });
  const send = (query: Record<string, string | number>) => codeOf({ endpoint: "/index-ticker", query });
  const sent = (name: string) => stub.requests.splice(0).map(({ query }) => query[name]);
  return { send, sent };
}

const now = "2026-03-01T12:00:00.000Z";
const past = "2026-02-01T00:00:00.000Z";
const future = "2026-03-01T12:00:05.000Z";
const isFuture = ({ timestamp = "" }: Query) => Date.parse(timestamp) > Date.parse(now);

describe("a service that refuses", () => {
  it("H12: the future is never asked for it, whatever field it would name", async () => {
    const { send, sent } = await startService((query) => (isFuture(query) ? "searchEnd" : undefined));
    for (const timestamp of [future, "2026-03-03T00:00:00.000Z", now, past])
      expect(await send({ timestamp, size: 10 })).toBeUndefined();
    const present = "2026-03-01T11:59:59.000Z";
    expect(sent("timestamp")).toEqual([present, present, present, past]);
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
    expect(await send({ timestamp: past, size: 2000, indexId: "btc" })).toBeUndefined();
    expect(sent("size")).toEqual(["2000", "10", "1000", "500"]);
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

type Answer = "page" | "413" | "502" | "503" | "504" | "cut" | "truncated" | "500";

/** A service whose answer depends on the size of the page. */
async function startSizedService(answer: (size: number) => Answer) {
  const body = JSON.stringify({ content: [] });
  const served = await startServedClient({
    respond: ({ query }, response) => {
      const how = answer(Number(query.size));
      if (how === "page") reply(response);
      else if (how === "truncated") response.writeHead(200).end(body.slice(0, -3));
      else if (how === "cut") {
        response.writeHead(200, { "content-length": body.length + 100 }).write(body);
        setImmediate(() => response.destroy());
      } else response.writeHead(Number(how)).end("<html></html>");
    },
  });
  const send = (size: number, endpoint = "/index-ticker") =>
    served.send({ endpoint, query: { timestamp: past, size } });
  const sizes = () => served.stub.requests.splice(0).map(({ query }) => Number(query.size));
  return { send, sizes };
}

describe("an endpoint whose large pages fail", () => {
  it.each<Answer>(["413", "cut", "truncated", "502", "503", "504"])(
    "with %s is asked for smaller ones; other endpoints are not",
    async (how) => {
      const { send, sizes } = await startSizedService((size) => (size > 600 ? how : "page"));
      await send(2000);
      expect([...new Set(sizes())]).toEqual([2000, 1000, 500]);
      await send(2000);
      await send(400);
      expect(sizes()).toEqual([500, 400]);
      await send(2000, "/ohlcv");
      expect(sizes()[0]).toBe(2000);
    },
  );

  it.each<[how: Answer, count: number]>([
    ["413", 1],
    ["truncated", 3],
    ["502", 3],
  ])("with %s: a smaller one is tried after %i failures", async (how, count) => {
    const { send, sizes } = await startSizedService((size) => (size > 600 ? how : "page"));
    await send(1000);
    expect(sizes()).toEqual([...Array<number>(count).fill(1000), 500]);
  });

  it.each<[how: Answer, smallest: number]>([
    ["413", 10],
    ["502", 50],
    ["truncated", 50],
  ])("with %s at every size is asked for %i at least", async (how, smallest) => {
    const { send, sizes } = await startSizedService(() => how);
    await expect(send(2000)).rejects.toThrow();
    expect(Math.min(...sizes())).toBe(smallest);
  });

  it("tries twice the size after some good pages, and ever more rarely", async () => {
    const { send, sizes } = await startSizedService((size) => (size > 600 ? "413" : "page"));
    for (let at = 0; at < 16; at++) await send(2000);
    const tried = sizes();
    expect(tried.flatMap((size, at) => (size === 1000 ? [at] : []))).toEqual([1, 7, 17]);
    expect(tried.filter((size) => size === 2000)).toHaveLength(1);
  });

  it("has its full size back soon after an outage", async () => {
    let failures = 12;
    const { send, sizes } = await startSizedService(() => (failures-- > 0 ? "502" : "page"));
    await send(2000);
    sizes();
    for (let at = 0; at < 40; at++) await send(2000);
    expect(sizes().slice(-8)).toEqual(Array(8).fill(2000));
  });

  it("keeps its size if the failure says nothing about it", async () => {
    let failures = 5;
    const { send, sizes } = await startSizedService(() => (failures-- > 0 ? "500" : "page"));
    await send(2000);
    expect(sizes()).toEqual(Array(6).fill(2000));
  });
});
