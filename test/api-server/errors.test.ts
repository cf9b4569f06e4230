import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  sendRequest,
  startRestClient,
  startSharedRestClient,
  UNKNOWN_UUID,
} from "../support/simulator/rest-client.ts";

const client = await startSharedRestClient();

describe("errors and transport", () => {
  it('"Error body": status, timestamp, message, errors', async () => {
    const { status, body } = await client.get(`/asset/${UNKNOWN_UUID}`);
    expect(status).toBe(404);
    const timestamp = "2026-03-01T12:00:10.000Z";
    expect(body).toEqual({ status: "NOT_FOUND", timestamp, message: expect.any(String), errors: [] });
  });

  it('"When no valid token is supplied the response is 401"', async () => {
    for (const authorization of ["", "Bearer nonsense", "Basic abc"]) {
      const { status, body } = await client.get("/asset", {}, { authorization });
      expect(status).toBe(401);
      expect(body.status).toBe("UNAUTHORIZED");
    }
  });

  it('"when the token lacks access to a resource the response is 403": each endpoint requires its scope', async () => {
    const limited = await startRestClient({ scopes: [] });
    const { exchanges, assets } = limited.simulator.universe;
    for (const path of [
      "/exchange-ticker",
      `/index-ticker?indexType=GWA&indexId=${assets[0]?.id}`,
      "/ohlcv?indexType=GWA",
      "/market-cap",
      `/derivatives/ticker/futures?exchangeId=${exchanges[0]?.id}`,
      `/derivatives/contract/futures?exchangeId=${exchanges[0]?.id}`,
    ]) {
      const { status, body } = await limited.get(path);
      expect([path, status, body.status]).toEqual([path, 403, "FORBIDDEN"]);
    }
    for (const path of ["/asset", "/market", "/exchange"]) expect((await limited.get(path)).status).toBe(200);
  });

  it('"read:LX: historical LX index tickers and LX end-of-day OHLCV"', async () => {
    const limited = await startRestClient({ scopes: ["read:index-ticker", "read:ohlcv"] });
    const [blx] = limited.simulator.universe.liquidIndexes;
    for (const path of ["/index-ticker", "/ohlcv"]) {
      expect((await limited.get(path, { indexType: "LX" })).status).toBe(403);
      expect((await limited.get(path, { indexId: blx?.id })).status).toBe(403);
      const { body } = await limited.get(path);
      expect(body.content.some(({ indexType }: { indexType: string }) => indexType === "LX")).toBe(false);
    }
    limited.simulator.grantScopes(["read:LX"]);
    await limited.signIn();
    expect((await limited.get("/index-ticker", { indexType: "LX" })).body.content).toHaveLength(3);
    expect((await limited.get("/index-ticker", { indexType: "GWA" })).status).toBe(403);
  });

  it("responds to an unknown path and an older version with 404", async () => {
    expect((await client.get("/nothing")).status).toBe(404);
    expect((await client.get("/index-ticker/extra")).status).toBe(404);
    expect((await sendRequest(`${client.simulator.baseUrl}/v2/asset`)).status).toBe(404);
  });

  it("sets the Date header by its own clock", async () => {
    expect((await client.get("/asset")).headers.get("date")).toBe("Sun, 01 Mar 2026 12:00:10 GMT");
  });

  it("compresses only when the client accepts it", async () => {
    const { body: grant } = await client.requestToken();
    const raw = (encoding: string, { baseUrl } = client.simulator) => {
      type Answer = { encoding: string | undefined; bytes: Buffer };
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      const headers = { authorization: `Bearer ${grant.access_token}`, "accept-encoding": encoding };
      request(`${baseUrl}/v3/exchange`, { headers }, (response) => {
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
    const uncompressed = await startRestClient({ quirks: { compression: "none" } });
    expect((await raw("gzip", uncompressed.simulator)).encoding).toBe(undefined);
  });
});
