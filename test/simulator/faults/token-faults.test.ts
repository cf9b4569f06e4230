import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FaultClient } from "../../support/simulator/fault-client.ts";

let client: FaultClient;
beforeAll(async () => {
  client = await FaultClient.start();
});
afterEach(() => client.simulator.setFaults(""));
afterAll(() => client.simulator.stop());

async function requestTokenWithFaults(...faults: string[]) {
  client.simulator.setFaults(faults.map((fault) => `POST /oauth/token ${fault}`).join("\n"));
  return JSON.parse((await client.requestToken()).text);
}

async function statusWith(token: string, path = "/asset"): Promise<number> {
  return (await client.get(path, { headers: { authorization: `Bearer ${token}` } })).status;
}

describe("faults of tokens", () => {
  it.each([
    ["0", 0],
    ["-5", -5],
    ["60", 60],
    ["string", "86400"],
    ["missing", undefined],
  ])("expires-in %s is sent, but the real lifetime is unchanged", async (parameter, expected) => {
    const token = await requestTokenWithFaults(`expires-in ${parameter}`);
    expect(token.expires_in).toBe(expected);
    expect(await statusWith(token.access_token)).toBe(200);
  });

  it("token-life issues a token with that lifetime", async () => {
    const token = await requestTokenWithFaults("token-life 60s");
    expect(token.expires_in).toBe(60);
    await client.clock.advance(59_000);
    expect(await statusWith(token.access_token)).toBe(200);
    await client.clock.advance(1_000);
    expect(await statusWith(token.access_token)).toBe(401);
  });

  it("same-token returns the previous token with its remaining seconds", async () => {
    const first = await requestTokenWithFaults("same-token");
    await client.clock.advance(100_000);
    const second = JSON.parse((await client.requestToken()).text);
    expect(second).toEqual({ ...first, expires_in: 86_300 });
  });

  it("odd-token contains characters that must be encoded, and is valid", async () => {
    const { access_token } = await requestTokenWithFaults("odd-token");
    expect(access_token).toMatch(/[+/].*=/);
    expect(access_token).toContain("&");
    expect(await statusWith(access_token)).toBe(200);
  });

  it("scope-without issues a token without the scope", async () => {
    const token = await requestTokenWithFaults("scope-without read:ohlcv");
    expect(token.scope).not.toContain("read:ohlcv");
    expect(token.scope).toContain("read:index-ticker");
    const index = `indexType=GWA&indexId=${client.firstAssetId}`;
    expect(await statusWith(token.access_token, `/ohlcv?${index}`)).toBe(403);
    expect(await statusWith(token.access_token, `/index-ticker?${index}`)).toBe(200);
  });

  it.each([
    ["upper", expect.stringContaining("READ:OHLCV")],
    ["unknown", "market-data:all"],
  ])("scope-form is=%s changes how the scopes are stated, not the token", async (form, scope) => {
    const token = await requestTokenWithFaults(`scope-form ${form}`);
    expect(token.scope).toEqual(scope);
    expect(await statusWith(token.access_token, "/market-cap")).toBe(200);
  });

  it("revoke invalidates a new token at once and permanently", async () => {
    const newToken = await client.fetchToken();
    client.simulator.setFaults("GET /asset revoke times=1");
    expect(await statusWith(newToken)).toBe(401);
    client.simulator.setFaults("");
    expect(await statusWith(newToken, "/market")).toBe(401);
    expect(await statusWith(await client.fetchToken())).toBe(200);
  });

  it("drop access_token sends a response without a token", async () => {
    expect(Object.keys(await requestTokenWithFaults("drop access_token"))).toEqual([
      "scope",
      "expires_in",
      "token_type",
    ]);
  });

  it.each(["status 503", "status 400", "status 401", "html", "redirect", "empty-body"])(
    "applies HTTP faults to the token endpoint: %s",
    async (fault) => {
      client.simulator.setFaults(`POST /oauth/token ${fault}`);
      const { status, text } = await client.requestToken();
      expect([status, text.includes("access_token")]).not.toEqual([200, true]);
      expect(client.faultCounts()).toEqual([1]);
    },
  );

  it("counts the requests per audience", async () => {
    client.simulator.setFaults("POST /oauth/token status 503 times=1");
    const audiences = [
      client.simulator.baseUrl,
      client.simulator.wsUrl,
      client.simulator.baseUrl,
      client.simulator.wsUrl,
    ];
    const statuses: number[] = [];
    for (const audience of audiences) statuses.push((await client.requestToken(audience)).status);
    expect(statuses).toEqual([503, 503, 200, 200]);
  });

  it("triggers on one audience with query=audience=…", async () => {
    client.simulator.setFaults(`POST /oauth/token status 503 query=audience=${client.simulator.wsUrl}`);
    expect((await client.requestToken(client.simulator.baseUrl)).status).toBe(200);
    expect((await client.requestToken(client.simulator.wsUrl)).status).toBe(503);
  });
});
