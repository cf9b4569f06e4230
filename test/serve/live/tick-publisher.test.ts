import { connect } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { TickServer } from "../../support/serve/tick-server.ts";
import { sendRequest } from "../../support/simulator/rest-client.ts";
import type { WebSocketClient } from "../../support/simulator/websocket-client.ts";
import { STEP } from "../../support/warehouse/filled-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const fixture = new TickServer();
const noon = parseTs("2026-03-01T12:00:00Z");
beforeAll(async () => {
  fixture.writeTicks(["a", "b"], [noon - STEP]);
  fixture.writeTicks(["blx"], [noon - STEP], "LX");
  fixture.warehouse.connection.database.exec("UPDATE series SET name = 'BLX' WHERE index_id = 'blx'");
  await fixture.start();
});

const upgradeRequest = (port: string, path: string, more = "") =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${more}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;

/** Passes over most of the polls of a pause. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5_000) {
    fixture.clock.jump(Math.min(left, 5_000));
    await fixture.clock.advance(0);
  }
}

const times = (client: WebSocketClient) =>
  client.messagesOf("INDEX_TICKER").map(({ timestamp }) => timestamp);
const ids = (messages: readonly Record<string, unknown>[]) => messages.map(({ indexId }) => indexId);

describe("a list of the latest state", () => {
  it("has a commit at once, though its answer is kept for a second", async () => {
    const listed = async () => {
      const { body } = await sendRequest(`${fixture.server?.baseUrl}/v3/index-ticker?indexType=LX`);
      return ids(body.content);
    };
    expect([await listed(), await listed()]).toEqual([["blx"], ["blx"]]);
    fixture.writeTicks(["elx"], [noon - STEP], "LX");
    expect(await listed()).toEqual(["blx", "elx"]);
  });
});

describe("the live feed", () => {
  it("sends ticks of other processes' commits within 250 ms, once each, and none from before", async () => {
    const byType = await fixture.connect();
    await fixture.subscribe(byType, { indexType: "GWA" });
    await fixture.subscribe(byType, { indexId: "a" });
    const byId = await fixture.connect();
    await fixture.subscribe(byId, { indexId: "b" });
    fixture.writeTicks(["a", "b"], [noon]);
    fixture.writeTicks(["blx"], [noon], "LX");
    await fixture.clock.advance(100);
    for (const client of [byType, byId]) await fixture.settle(client);
    expect(ids(byType.messagesOf("INDEX_TICKER"))).toEqual(["a", "b"]);
    expect(ids(byId.messagesOf("INDEX_TICKER"))).toEqual(["b"]);
    const { body } = await sendRequest(`${fixture.server?.baseUrl}/v3/index-ticker?indexId=b`);
    const [{ event: _, ...sent } = { event: "" }] = byId.messagesOf("INDEX_TICKER");
    expect(body.content).toEqual([sent]);
  });

  it("sends an index that appears later, no filled history, and the name of a liquid index", async () => {
    const client = await fixture.connect();
    await fixture.subscribe(client, { indexType: "GWA" });
    await fixture.subscribe(client, { indexType: "LX" });
    fixture.writeTicks(["c"], [noon - 100 * STEP, noon + STEP]);
    fixture.writeTicks(["a"], [noon - 50 * STEP]);
    fixture.writeTicks(["blx"], [noon + STEP], "LX");
    await fixture.clock.advance(1500);
    await fixture.settle(client);
    const sent = client.messagesOf("INDEX_TICKER");
    const { body } = await sendRequest(`${fixture.server?.baseUrl}/v3/index-ticker?indexId=blx`);
    expect(body).toMatchObject({ content: [{ indexType: "LX", name: "BLX" }] });
    expect(sent.map(({ indexId, timestamp, name }) => [indexId, timestamp, name])).toEqual([
      ["blx", "2026-03-01T12:00:30.000Z", "BLX"],
      ["c", "2026-03-01T12:00:30.000Z", undefined],
    ]);
  });

  it("does not poll without a subscription", async () => {
    for (const client of fixture.clients.splice(0)) {
      client.socket.terminate();
      await client.waitForClose();
    }
    await fixture.clock.advance(1000);
    expect(fixture.clock.timerCount).toBe(0);
    // What was committed meanwhile is no news to the next client.
    fixture.writeTicks(["a"], [noon + 2 * STEP]);
    const next = await fixture.connect();
    await fixture.subscribe(next, { indexType: "GWA" });
    fixture.writeTicks(["a"], [noon + 3 * STEP]);
    await fixture.clock.advance(100);
    await fixture.settle(next);
    expect(times(next)).toEqual(["2026-03-01T12:01:30.000Z"]);
  });

  it("J2: drops a client that does not read, with a reason, and counts it", async () => {
    const slow = await fixture.connect();
    await fixture.subscribe(slow, { indexType: "GWA" });
    slow.socket.pause();
    const many = Array.from({ length: 50 }, (_, at) => `many-${at}`);
    const extra = JSON.stringify({ note: "x".repeat(60_000) });
    for (let second = 1; fixture.server?.status.dropped === 0 && second < 60; second++) {
      fixture.writeTicks(many, [noon + second * 1_000_000], "GWA", extra);
      await fixture.clock.advance(1000);
    }
    expect(fixture.server?.status).toMatchObject({ dropped: 1 });
    slow.socket.resume();
    expect(await slow.waitForClose()).toMatchObject({ code: 1013 });
  });

  it("J2: drops a client that asks and never reads, however short the answers", async () => {
    const { dropped = 0 } = fixture.server?.status ?? {};
    const { port } = new URL(fixture.server?.baseUrl ?? "");
    const socket = connect(Number(port), "127.0.0.1").pause();
    socket.write(upgradeRequest(port, "/v3/stream"));
    const ping = Buffer.from('{"event":"PING"}');
    const frame = Buffer.concat([Buffer.of(0x81, 0x80 | ping.length, 0, 0, 0, 0), ping]);
    const many = Buffer.concat(Array.from({ length: 2_000 }, () => frame));
    for (let sent = 0; fixture.server?.status.dropped === dropped && sent < 100; sent++) {
      await new Promise((resolve) => socket.write(many, resolve));
      await fixture.clock.advance(1);
    }
    expect(fixture.server?.status).toMatchObject({ dropped: dropped + 1 });
    socket.destroy();
  });

  it("J4: refuses pages of other sites, and unknown paths", async () => {
    const { port } = new URL(fixture.server?.baseUrl ?? "");
    const upgrade = (path: string, origin: string) =>
      new Promise<string>((resolve) => {
        const socket = connect(Number(port), "127.0.0.1", () =>
          socket.write(upgradeRequest(port, path, `Origin: ${origin}\r\n`)),
        );
        socket.once("data", (data) => {
          resolve(String(data).slice(9, 12));
          socket.destroy();
        });
      });
    expect(await upgrade("/v3/stream", "https://evil.example")).toBe("403");
    expect(await upgrade("/v3/other", `http://127.0.0.1:${port}`)).toBe("404");
    expect(await upgrade("/v3", `http://127.0.0.1:${port}`)).toBe("101");
  });

  it("announces ticks that come after later ones, once, and never sends them out of order", async () => {
    const client = await fixture.connect();
    await fixture.subscribe(client, { indexId: "a" });
    const at = (n: number) => noon + n * STEP;
    await pass(20 * 30_000);
    fixture.writeTicks(["a"], [at(20), at(23)]);
    await fixture.clock.advance(100);
    fixture.writeTicks(["a"], [at(21), at(22)]);
    // History from before the subscription, and rows that are confirmed, are no news.
    fixture.writeTicks(["a"], [at(-90), at(20)]);
    await fixture.clock.advance(100);
    await fixture.settle(client);
    expect(times(client)).toEqual(["2026-03-01T12:10:00.000Z", "2026-03-01T12:11:30.000Z"]);
    expect(client.messagesOf("GAP")).toEqual([
      expect.objectContaining({
        stream: "index_ticks",
        indexId: "a",
        from: "2026-03-01T12:10:30.000000Z",
        to: "2026-03-01T12:11:00.000001Z",
        state: "filled",
      }),
    ]);
  });

  it("announces the ticks of a pause that are stored together with newer ones", async () => {
    const client = await fixture.connect();
    await fixture.subscribe(client, { indexId: "b" });
    const step = (n: number) => noon + (40 + n) * STEP;
    await pass(step(0) / 1000 - fixture.clock.now());
    fixture.writeTicks(["b"], [step(0)]);
    await fixture.clock.advance(100);
    await pass(20 * 30_000);
    fixture.writeTicks(
      ["b"],
      Array.from({ length: 20 }, (_, n) => step(n + 1)),
    );
    await fixture.clock.advance(100);
    await fixture.settle(client);
    // Ticks of the last five minutes are news.
    const text = (n: number) => new Date(step(n) / 1000).toISOString();
    const isNews = Array.from({ length: 10 }, (_, n) => text(n + 11));
    expect(times(client)).toEqual([text(0), ...isNews]);
    expect(client.messagesOf("GAP").map(({ from, to, state }) => [from, to, state])).toEqual([
      ["2026-03-01T12:20:30.000000Z", "2026-03-01T12:25:00.000001Z", "filled"],
    ]);
    // The page that confirms them repeats nothing.
    fixture.writeTicks(["b"], [step(1), step(2), step(12)], "GWA", '{"a":1}');
    await fixture.clock.advance(100);
    await fixture.settle(client);
    expect(client.messagesOf("GAP")).toHaveLength(1);
  });
});
