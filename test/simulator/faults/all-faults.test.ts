import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faultDefinitions } from "../../../src/simulator/faults/catalogue.ts";
import type { FaultDefinition } from "../../../src/simulator/faults/fault-definition.ts";
import { seed } from "../../support/seed.ts";
import { WebSocketFixture } from "../../support/simulator/websocket-client.ts";

let stage: WebSocketFixture;
beforeAll(async () => {
  stage = await WebSocketFixture.start({ seed, pingSeconds: 15 });
});
afterAll(() => stage.stop());

/** A word with something for every parameter that it needs, and small where the usual is big. */
function sample({ name: word, parameters }: FaultDefinition, at: number): string {
  const samples: Record<string, string> = { number: "503", duration: "10s", text: "price" };
  const small: Record<string, string> = {
    mb: "mb=1",
    rows: "rows=0.5",
    on: "on=tick",
    said: "said=60",
    life: "life=1h",
  };
  const given = Object.entries(parameters).flatMap(([name, { kind, choices, defaultValue: standard }]) => {
    if (name === "rows" && kind === "number") return "rows=3";
    if (small[name]) return small[name];
    if (standard !== undefined && !choices) return [];
    return `${name}=${choices ? choices[at % choices.length] : samples[kind]}`;
  });
  return [word, ...given].join(" ");
}

const fits = ({ eventKinds: moments }: FaultDefinition, live: boolean) =>
  moments.some((moment) => (live ? moment !== "request" && moment !== "port" : moment === "request"));

describe("all faults at once", () => {
  it("strike again and again, and leave a simulator that is as good as new", async () => {
    const rounds = [0, 1, 2, 3].flatMap((at) => [
      ...faultDefinitions.filter((word) => fits(word, false)).map((word) => `* * ${sample(word, at)} p=0.02`),
      ...faultDefinitions.filter((word) => fits(word, true)).map((word) => `ws ${sample(word, at)} p=0.1`),
    ]);
    const { rest, clock, simulator } = stage;
    const before = await rest.get(rest.pagePath(50));
    simulator.setFaults(rounds.join("\n"));

    const paths = ["/asset", "/market", "/exchange-ticker", "/market-cap", rest.pagePath(20)];
    const statuses = new Map<number, number>();
    const asking = async (path: string) => {
      for (let turn = 0; turn < 30; turn++) {
        const { status } = await rest.get(`${path}${path.includes("?") ? "&" : "?"}turn=${turn}`, {
          deadlineMs: 30_000,
        });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const listening = async () => {
      for (let turn = 0; turn < 20; turn++) {
        const { text } = await rest.requestToken(simulator.wsUrl, { deadlineMs: 30_000 });
        const token = /"access_token":"([^"]+)"/.exec(text)?.[1];
        const client = stage.connectWithToken(token ?? "none");
        client.socket.on("open", () => client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX" }));
        await clock.sleep(120_000);
        client.socket.terminate();
      }
    };
    await clock.runUntil(Promise.all([...paths.map(asking), listening()]));

    const idle = simulator.faultCounts.filter(({ struck }) => struck === 0);
    expect(simulator.faultCounts.length - idle.length).toBeGreaterThan(80);
    expect(statuses.size).toBeGreaterThan(4);
    stage.clear();
    rest.token = await rest.fetchToken();
    expect((await rest.get(rest.pagePath(50))).text).toBe(before.text);
    const client = await stage.connectAndSubscribe("LX");
    expect((await clock.runUntil(client.waitFor("INDEX_TICKER", 3))).length).toBeGreaterThanOrEqual(3);
    stage.clear();
    for (let turn = 0; turn < 100 && clock.busyCount !== 0; turn++) await clock.advance(1);
    expect(clock.busyCount).toBe(0);
  });
});
