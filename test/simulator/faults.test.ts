import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { FaultClient, type RequestOutcome } from "../support/simulator/fault-client.ts";
import { WebSocketFixture } from "../support/simulator/websocket-client.ts";
import { createFault, Fault, type FaultCall } from "./faults.ts";

const size = { assets: 6, markets: 6, exchanges: 2 };
const HOUR_MS = 3_600_000;

/** What a plain client sees of tokens and pages, the same each time. */
async function readPages(fault?: Fault): Promise<string[]> {
  const client = await FaultClient.start({ size });
  const { clock, simulator } = client;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const { nextId } = await client.getPage(client.pagePath(20));
  if (fault) simulator.setFaults(fault);
  await clock.runUntil(clock.sleep(1_000));
  const seen: string[] = [];
  const see = async (send: (options: object) => Promise<RequestOutcome>) => {
    const startedAt = clock.monotonic();
    const { status, headers, text, isWhole, error } = await clock.runUntil(
      send({ agent, deadlineMs: 120_000 }),
    );
    const ms = clock.monotonic() - startedAt;
    seen.push(JSON.stringify([status, headers, text.slice(0, 100_000), isWhole, error, ms]));
  };
  for (let turn = 0; turn < 2; turn++) {
    await see((options) => client.requestToken(simulator.baseUrl, options));
    await see((options) => client.get(client.pagePath(20), options));
    await see((options) => client.get(client.pagePath(20, nextId), options));
    await see((options) => client.get("/asset?symbol=NONE", options));
    await see((options) => client.get(`/ohlcv?indexId=${client.firstAssetId}&indexType=GWA`, options));
  }
  agent.destroy();
  await clock.runUntil(simulator.stop());
  return seen;
}

/** What a plain client sees of the websocket. */
async function readTicks(fault?: Fault): Promise<string> {
  const fixture = await WebSocketFixture.start({ size, pingSeconds: 15 });
  if (fault) fixture.simulator.setFaults(fault);
  const client = await fixture.startConnecting();
  const pass = async (ms: number) => {
    await fixture.clock.advance(ms);
    await sleep(10);
  };
  const send = (event: string) => {
    if (client.socket.readyState === client.socket.OPEN) client.send({ event, indexType: "LX" });
  };
  for (let turn = 0; turn < 50 && client.messages.length === 0; turn++) await sleep(2);
  send("SUBSCRIBE_INDEX_TICKER");
  await sleep(10);
  for (let turn = 0; turn < 12; turn++) await pass(5_000);
  send("UNSUBSCRIBE_INDEX_TICKER");
  await pass(5_000);
  const seen = JSON.stringify([client.messages, client.raw, client.end]);
  await fixture.stop();
  return seen;
}

const pageFaults: FaultCall[] = [
  ["revoke"],
  ["expiresIn", 60],
  ["tokenLife", 3_600],
  ["sameToken"],
  ["scopeWithout", "read:LX"],
  ["scopeForm", "upper"],
  ["status", 503, { retryAfter: "imf" }],
  ["requestLimit", 1],
  ["overload", 0],
  ["redirect"],
  ["latency", 10_000],
  ["slowHeaders"],
  ["drip"],
  ["stall"],
  ["reset"],
  ["hangUp", { socket: "reused" }],
  ["cut", "length"],
  ["encoding", "crc"],
  ["html"],
  ["emptyBody"],
  ["noContent"],
  ["bom"],
  ["contentType", "text/html"],
  ["envelope", "null"],
  ["emptyList", "null"],
  ["stale", HOUR_MS],
  ["lag", 13 * HOUR_MS],
  ["lateRows", 24 * HOUR_MS, 0.5],
  ["sizeCap", 5],
  ["pageLimit", 10],
  ["foreignRows", 2],
  ["repeatPage"],
  ["swapPages"],
  ["deadCursor", 404],
  ["withdraw", "2026-03-01T11:55:00Z", "2026-03-01T11:58:00Z"],
  ["begins", "2026-03-01T11:58:00Z"],
  ["retention", 60_000],
  ["secondRecords"],
  ["cycle", 1],
  ["nextId", "absent"],
  ["emptyPage"],
  ["order", "ascending"],
  ["shrink"],
  ["duplicateRow", "last"],
  ["bigBody", 1],
  ["deepNesting", 100],
  ["unknownFields"],
  ["reorderedFields"],
  ["duplicateKeys"],
  ["protoKey"],
  ["decimals", "long"],
  ["set", "price", "NaN", { rows: "first" }],
  ["echoSecrets"],
  ["drop", "timestamp"],
  ["timestamps", "us"],
  ["shiftTimestamps", -60_000],
  ["upsideDown", { on: "/ohlcv" }],
  ["refuse"],
];

const tickFaults: FaultCall[] = [
  ["upgradeStatus", 503],
  ["upgradeStall"],
  ["connected", "never"],
  ["subscribed", "other"],
  ["subscriptionError", 404],
  ["dropConnection", { when: "tick" }],
  ["mute"],
  ["halfOpen"],
  ["pingStorm", 1_000],
  ["message", "trade"],
  ["replay", 3],
  ["duplicateTick"],
  ["missingTick"],
  ["lateTick", 20_000],
  ["binaryTick"],
  ["otherValue"],
  ["set", "price", "NaN", { on: "ticks" }],
];

/** Twice the same without faults, so that every difference is the fault's. */
const plainPages = readPages();
const plainTicks = readTicks();

describe("every fault changes what a plain client sees", () => {
  it("is tried", async () => {
    const names = [...pageFaults, ...tickFaults].map(([name]) => name);
    expect(Object.keys(Fault).filter((name) => !names.includes(name as FaultCall[0]))).toEqual([]);
    expect([await readPages(), await readTicks()]).toEqual([await plainPages, await plainTicks]);
  });

  it.each(pageFaults)("%s of pages and tokens", async (...call) => {
    expect(await readPages(createFault(call as FaultCall))).not.toEqual(await plainPages);
  });

  it.each(tickFaults)("%s of the websocket", async (...call) => {
    expect(await readTicks(createFault(call as FaultCall))).not.toEqual(await plainTicks);
  });
});
