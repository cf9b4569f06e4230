import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { findFreePort } from "../support/free-port.ts";
import { RestClient } from "../support/simulator/rest-client.ts";
import { WebSocketFixture } from "../support/simulator/websocket-client.ts";
import { createFault, Fault, type FaultCall } from "./faults.ts";

const size = { assets: 6, markets: 6, exchanges: 2 };
const HOUR_MS = 3_600_000;
const DEADLINE_MS = 120_000;

/** What arrives of an answer, and the error with which it breaks off. */
async function readAnswer(url: string, init: RequestInit): Promise<unknown[]> {
  const seen: unknown[] = [];
  let text = "";
  try {
    const { status, headers, body } = await fetch(url, { ...init, redirect: "manual" });
    seen.push(status, [...headers]);
    for await (const chunk of body ?? []) text += Buffer.from(chunk).toString("latin1");
  } catch (error) {
    seen.push(String(error));
  }
  return [...seen, text.slice(0, 100_000)];
}

/** What a plain client sees of tokens and pages, the same each time. */
async function readPages(fault?: Fault): Promise<string[]> {
  const client = await RestClient.start({ size, port: await findFreePort() });
  const { clock, simulator } = client;
  const { baseUrl, clientId, clientSecret } = simulator;
  const index = `indexType=GWA&indexId=${simulator.universe.assets[0]?.id}`;
  const page = `/index-ticker?${index}&size=20&timestamp=2026-03-01T12:00:00Z`;
  const { nextId } = (await client.get(page)).body;
  if (fault) simulator.setFaults(fault);
  await clock.runUntil(clock.sleep(1_000));
  const seen: string[] = [];
  const see = async (path: string, init: RequestInit = {}) => {
    const startedAt = clock.monotonic();
    const abort = new AbortController();
    // The clock stands still during the request, but for what a fault waits.
    const endings = [clock.beginWork(), clock.after(DEADLINE_MS, () => abort.abort())];
    const headers = { authorization: `Bearer ${client.token}`, "content-type": "application/json" };
    const answer = readAnswer(`${baseUrl}/v3${path}`, { headers, signal: abort.signal, ...init });
    const parts = await clock.runUntil(answer.finally(() => endings.map((end) => end())));
    seen.push(JSON.stringify([...parts, clock.monotonic() - startedAt]));
  };
  const grant = { grant_type: "client_credentials", audience: baseUrl };
  const body = JSON.stringify({ ...grant, client_id: clientId, client_secret: clientSecret });
  for (let turn = 0; turn < 2; turn++) {
    await see("/oauth/token", { method: "POST", body });
    await see(page);
    await see(`${page}&startAfter=${encodeURIComponent(nextId)}`);
    await see("/asset?symbol=NONE");
    await see(`/ohlcv?${index}`);
  }
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
