import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FaultDefinition, faultDefinitions } from "../../../src/simulator/faults/catalogue.ts";
import { seed } from "../../support/seed.ts";
import { WebSocketFixture } from "../../support/simulator/websocket-client.ts";

let fixture: WebSocketFixture;
beforeAll(async () => {
  fixture = await WebSocketFixture.start({ seed, pingSeconds: 15 });
});
afterAll(() => fixture.stop());

/** A fault with a value for each required parameter, and small values where the defaults are big. */
function sample({ name: word, parameters }: FaultDefinition, at: number): string {
  const samples: Record<string, string> = { number: "503", duration: "10s", text: "price" };
  const small: Record<string, string> = {
    mb: "mb=1",
    rows: "rows=0.5",
    on: "on=tick",
    said: "said=60",
    life: "life=1h",
  };
  const given = Object.entries(parameters).flatMap(([name, { kind, choices, defaultValue }]) => {
    if (name === "rows" && kind === "number") return "rows=3";
    if (small[name]) return small[name];
    if (defaultValue !== undefined && !choices) return [];
    return `${name}=${choices ? choices[at % choices.length] : samples[kind]}`;
  });
  return [word, ...given].join(" ");
}

const fits = ({ eventKinds }: FaultDefinition, live: boolean) =>
  eventKinds.some((kind) => (live ? kind !== "request" && kind !== "port" : kind === "request"));

describe("all faults at once", () => {
  it("trigger many times, and the simulator works normally afterwards", async () => {
    const rounds = [0, 1, 2, 3].flatMap((at) => [
      ...faultDefinitions.filter((word) => fits(word, false)).map((word) => `* * ${sample(word, at)} p=0.02`),
      ...faultDefinitions.filter((word) => fits(word, true)).map((word) => `ws ${sample(word, at)} p=0.1`),
    ]);
    const { rest, clock, simulator } = fixture;
    const before = await rest.get(rest.pagePath(50));
    simulator.setFaults(rounds.join("\n"));

    const paths = ["/asset", "/market", "/exchange-ticker", "/market-cap", rest.pagePath(20)];
    const statuses = new Map<number, number>();
    const sendRequests = async (path: string) => {
      for (let turn = 0; turn < 30; turn++) {
        const { status } = await rest.get(`${path}${path.includes("?") ? "&" : "?"}turn=${turn}`, {
          deadlineMs: 30_000,
        });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const subscribeRepeatedly = async () => {
      for (let turn = 0; turn < 20; turn++) {
        const { text } = await rest.requestToken(simulator.wsUrl, { deadlineMs: 30_000 });
        const token = /"access_token":"([^"]+)"/.exec(text)?.[1];
        const client = fixture.connectWithToken(token ?? "none");
        client.socket.on("open", () => client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX" }));
        await clock.sleep(120_000);
        client.socket.terminate();
      }
    };
    await clock.runUntil(Promise.all([...paths.map(sendRequests), subscribeRepeatedly()]));

    const idle = simulator.faultCounts.filter(({ struck }) => struck === 0);
    expect(simulator.faultCounts.length - idle.length).toBeGreaterThan(80);
    expect(statuses.size).toBeGreaterThan(4);
    fixture.clear();
    rest.token = await rest.fetchToken();
    expect((await rest.get(rest.pagePath(50))).text).toBe(before.text);
    const client = await fixture.connectAndSubscribe("LX");
    expect((await clock.runUntil(client.waitFor("INDEX_TICKER", 3))).length).toBeGreaterThanOrEqual(3);
    fixture.clear();
    for (let turn = 0; turn < 100 && clock.busyCount !== 0; turn++) await clock.advance(1);
    expect(clock.busyCount).toBe(0);
  });
});
