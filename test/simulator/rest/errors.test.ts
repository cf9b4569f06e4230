import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { sendRequest, startRestClient, UNKNOWN_UUID } from "../../support/simulator/rest-client.ts";

describe("errors and transport", () => {
  it('"Error body": status, timestamp, message, errors', async () => {
    const caller = await startRestClient();
    const { status, body } = await caller.get(`/asset/${UNKNOWN_UUID}`);
    expect(status).toBe(404);
    expect(body).toEqual({
      status: "NOT_FOUND",
      timestamp: "2026-03-01T12:00:10.000Z",
      message: expect.any(String),
      errors: [],
    });
  });

  it('"When no valid token is supplied the response is 401"', async () => {
    const caller = await startRestClient();
    for (const authorization of ["", "Bearer nonsense", "Basic abc"]) {
      const { status, body } = await caller.get("/asset", {}, { authorization });
      expect(status).toBe(401);
      expect(body.status).toBe("UNAUTHORIZED");
    }
  });

  it('"when the token lacks access to a resource the response is 403": each endpoint wants its scope', async () => {
    const caller = await startRestClient({ scopes: [] });
    const { exchanges, assets } = caller.simulator.universe;
    for (const path of [
      "/exchange-ticker",
      `/index-ticker?indexType=GWA&indexId=${assets[0]?.id}`,
      "/ohlcv?indexType=GWA",
      "/market-cap",
      `/derivatives/ticker/futures?exchangeId=${exchanges[0]?.id}`,
      `/derivatives/contract/futures?exchangeId=${exchanges[0]?.id}`,
    ]) {
      const { status, body } = await caller.get(path);
      expect([path, status, body.status]).toEqual([path, 403, "FORBIDDEN"]);
    }
    for (const path of ["/asset", "/market", "/exchange"]) expect((await caller.get(path)).status).toBe(200);
  });

  it('"read:LX: historical LX index tickers and LX end-of-day OHLCV"', async () => {
    const caller = await startRestClient({ scopes: ["read:index-ticker", "read:ohlcv"] });
    const [blx] = caller.simulator.universe.liquidIndexes;
    for (const path of ["/index-ticker", "/ohlcv"]) {
      expect((await caller.get(path, { indexType: "LX" })).status).toBe(403);
      expect((await caller.get(path, { indexId: blx?.id })).status).toBe(403);
      const { body } = await caller.get(path);
      expect(body.content.some(({ indexType }: { indexType: string }) => indexType === "LX")).toBe(false);
    }
    caller.simulator.grantScopes(["read:LX"]);
    await caller.signIn();
    expect((await caller.get("/index-ticker", { indexType: "LX" })).body.content).toHaveLength(3);
    expect((await caller.get("/index-ticker", { indexType: "GWA" })).status).toBe(403);
  });

  it("answers a path outside the interface, and an older version, with 404", async () => {
    const caller = await startRestClient();
    expect((await caller.get("/nothing")).status).toBe(404);
    expect((await caller.get("/index-ticker/extra")).status).toBe(404);
    expect((await sendRequest(`${caller.simulator.baseUrl}/v2/asset`)).status).toBe(404);
  });

  it("stamps its Date header by its own clock", async () => {
    const caller = await startRestClient();
    expect((await caller.get("/asset")).headers.get("date")).toBe("Sun, 01 Mar 2026 12:00:10 GMT");
  });

  it("compresses when asked and only then", async () => {
    const caller = await startRestClient();
    const { body: grant } = await caller.requestToken();
    const raw = (encoding: string) => {
      const { promise, resolve, reject } = Promise.withResolvers<{
        encoding: string | undefined;
        bytes: Buffer;
      }>();
      const headers = { authorization: `Bearer ${grant.access_token}`, "accept-encoding": encoding };
      request(`${caller.simulator.baseUrl}/v3/exchange`, { headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({ encoding: response.headers["content-encoding"], bytes: Buffer.concat(chunks) }),
        );
      })
        .on("error", reject)
        .end();
      return promise;
    };
    const plain = await raw("identity");
    const zipped = await raw("gzip, deflate");
    const declined = await raw("gzip;q=0");
    expect([plain.encoding, zipped.encoding, declined.encoding]).toEqual([undefined, "gzip", undefined]);
    expect(gunzipSync(zipped.bytes)).toEqual(plain.bytes);
  });
});
