import { describe, expect, it } from "vitest";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { iso, sendRequest, startRestClient } from "../support/simulator/rest-client.ts";

describe("the simulator controls", () => {
  it("report the request log in process and over HTTP", async () => {
    const client = await startRestClient();
    await client.get("/asset", { symbol: "BTC" });
    await client.get("/asset");
    await client.get("/nothing");
    const { requests, baseUrl } = client.simulator;
    expect(requests.count("/v3/asset")).toBe(2);
    expect(requests.list.at(-1)).toEqual({
      method: "GET",
      target: "/v3/nothing",
      status: 404,
      at: client.now,
    });
    const { body } = await sendRequest(`${baseUrl}/simulator/requests`);
    expect(body).toMatchObject({ list: [{}, { target: "/v3/asset?symbol=BTC", status: 200 }, {}, {}] });
    requests.clear();
    expect(requests.total).toBe(0);
  });

  it("grant scopes and rotate the secret in process, and revoke tokens over HTTP", async () => {
    const client = await startRestClient({ scopes: [] });
    const post = (path: string) =>
      sendRequest(`${client.simulator.baseUrl}/simulator/${path}`, { method: "POST" });
    client.simulator.grantScopes(["read:market-cap", "read:ohlcv"]);
    await client.signIn();
    expect((await client.get("/market-cap")).status).toBe(200);
    await post("revoke");
    expect((await client.get("/market-cap")).status).toBe(401);
    client.simulator.rotateSecret("fresh");
    expect((await client.requestToken({ client_secret: "demo-secret" })).status).toBe(401);
    expect(client.simulator.clientSecret).toBe("fresh");
    expect((await post("nothing")).status).toBe(404);
  });

  it("prerender pages that are identical to normal pages", async () => {
    const client = await startRestClient();
    const fresh = await startRestClient();
    const id = client.simulator.universe.assets[0]?.id ?? "";
    const toMs = client.now - 3_600_000;
    expect(client.simulator.prerender({ type: "GWA", id, fromMs: toMs - 50 * 3_600_000, toMs })).toBe(8000);
    const query = { indexType: "GWA", indexId: id, timestamp: iso(toMs), size: 2000 };
    expect((await client.get("/index-ticker", query)).text).toBe(
      (await fresh.get("/index-ticker", query)).text,
    );
  });

  it("stop with open connections, and free the port", async () => {
    const first = await startSimulator();
    await sendRequest(`${first.baseUrl}/v3/asset`);
    await first.stop();
    const second = await startSimulator({ port: Number(new URL(first.baseUrl).port) });
    expect(second.baseUrl).toBe(first.baseUrl);
    await second.stop();
  });
});
