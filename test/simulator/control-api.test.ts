import { describe, expect, it } from "vitest";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { iso, sendRequest, startRestClient } from "../support/simulator/rest-client.ts";

describe("the simulator's own controls", () => {
  it("count what was asked, and tell it in process and over HTTP", async () => {
    const caller = await startRestClient();
    await caller.get("/asset", { symbol: "BTC" });
    await caller.get("/asset");
    await caller.get("/nothing");
    const { requests, baseUrl } = caller.simulator;
    expect(requests.count("/v3/asset")).toBe(2);
    expect(requests.list.at(-1)).toEqual({
      method: "GET",
      target: "/v3/nothing",
      status: 404,
      at: caller.now,
    });
    const { body } = await sendRequest(`${baseUrl}/simulator/requests?since=1`);
    expect(body).toMatchObject({
      total: 4,
      counts: { "/v3/asset": 2, "/v3/oauth/token": 1 },
      list: [{ target: "/v3/asset?symbol=BTC", status: 200 }, {}, {}],
    });
    requests.clear();
    expect(requests.total).toBe(0);
  });

  it("grant, revoke and rotate over HTTP", async () => {
    const caller = await startRestClient({ scopes: [] });
    const post = (path: string, body = "") =>
      sendRequest(`${caller.simulator.baseUrl}/simulator/${path}`, { method: "POST", body });
    expect((await post("scopes", "read:market-cap read:ohlcv")).status).toBe(200);
    await caller.signIn();
    expect((await caller.get("/market-cap")).status).toBe(200);
    await post("revoke");
    expect((await caller.get("/market-cap")).status).toBe(401);
    await post("secret", "fresh");
    expect((await caller.requestToken({ client_secret: "demo-secret" })).status).toBe(401);
    expect(caller.simulator.clientSecret).toBe("fresh");
    expect((await post("nothing")).status).toBe(404);
  });

  it("render pages beforehand that are then served as they would have been", async () => {
    const caller = await startRestClient();
    const fresh = await startRestClient();
    const id = caller.simulator.universe.assets[0]?.id ?? "";
    const toMs = caller.now - 3_600_000;
    expect(caller.simulator.prerender({ type: "GWA", id, fromMs: toMs - 50 * 3_600_000, toMs })).toBe(8000);
    const query = { indexType: "GWA", indexId: id, timestamp: iso(toMs), size: 2000 };
    expect((await caller.get("/index-ticker", query)).text).toBe(
      (await fresh.get("/index-ticker", query)).text,
    );
  });

  it("stop with connections open, and leave the port to the next", async () => {
    const first = await startSimulator();
    await sendRequest(`${first.baseUrl}/v3/asset`);
    await first.stop();
    const second = await startSimulator({ port: Number(new URL(first.baseUrl).port) });
    expect(second.baseUrl).toBe(first.baseUrl);
    await second.stop();
  });
});
