import { describe, expect, it } from "vitest";
import { sendRequest, startRestClient } from "../support/simulator/rest-client.ts";
import { itOfSimulator } from "../support/simulator/server-under-test.ts";

describe("the token endpoint", () => {
  it('"Response 200: token response": access_token, scope, expires_in, token_type', async () => {
    const client = await startRestClient({ scopes: ["read:ohlcv", "read:LX"] });
    const { status, body } = await client.requestToken();
    expect(status).toBe(200);
    const token = { scope: "read:ohlcv read:LX", expires_in: 86_400, token_type: "Bearer" };
    expect(body).toEqual({ access_token: expect.any(String), ...token });
  });

  it('"JSON body": a form is rejected', async () => {
    const client = await startRestClient();
    const { status, body } = await client.requestToken({}, "application/x-www-form-urlencoded");
    expect(status).toBe(400);
    expect(body.status).toBe("BAD_REQUEST");
  });

  it('"Audience selects the target": a websocket token is invalid on REST', async () => {
    const client = await startRestClient();
    const { body } = await client.requestToken({ audience: client.simulator.wsUrl });
    const answer = await client.get("/asset", {}, { authorization: `Bearer ${body.access_token}` });
    expect(answer.status).toBe(401);
  });

  it.each([
    ["rejects an audience that is neither address", "audience", "https://elsewhere.example"],
    ['"grant_type (string, client_credentials)": rejects any other value', "grant_type", "password"],
  ])("%s", async (_, field, rejectedValue) => {
    const client = await startRestClient();
    const { status, body } = await client.requestToken({ [field]: rejectedValue });
    expect(status).toBe(400);
    expect(body.errors[0]).toMatchObject({ field, rejectedValue });
  });

  it("responds to a wrong secret with 401, and to the old secret after a rotation", async () => {
    const client = await startRestClient({ clientSecret: "old" });
    expect((await client.requestToken({ client_secret: "wrong" })).status).toBe(401);
    await client.simulator.rotateSecret("new");
    expect((await client.requestToken({ client_secret: "old" })).status).toBe(401);
    expect((await client.requestToken({ client_secret: "new" })).status).toBe(200);
  });

  it('"Token lifetime: 24 hours": the token expires by the clock of the service', async () => {
    const client = await startRestClient();
    await client.clock.advance(86_399_000);
    expect((await client.get("/asset")).status).toBe(200);
    await client.clock.advance(1000);
    expect((await client.get("/asset")).status).toBe(401);
  });

  itOfSimulator("can issue tokens that must be encoded in a URL", async () => {
    const client = await startRestClient({ quirks: { awkwardTokens: true } });
    const { body } = await client.requestToken();
    expect(encodeURIComponent(body.access_token)).not.toBe(body.access_token);
    expect((await client.get("/asset")).status).toBe(200);
  });

  itOfSimulator("responds with 401 to all tokens after they are revoked", async () => {
    const client = await startRestClient();
    client.simulator.revokeTokens();
    expect((await client.get("/asset")).status).toBe(401);
    await client.signIn();
    expect((await client.get("/asset")).status).toBe(200);
  });

  it('"The token carries the scopes": a newly granted scope is only in new tokens', async () => {
    const client = await startRestClient({ scopes: ["read:ohlcv"] });
    client.simulator.grantScopes(["read:ohlcv", "read:market-cap"]);
    expect((await client.get("/market-cap")).status).toBe(403);
    await client.signIn();
    expect((await client.get("/market-cap")).status).toBe(200);
  });

  it("responds to GET on the token path with 405", async () => {
    const client = await startRestClient();
    const { baseUrl } = client.simulator;
    expect((await sendRequest(`${baseUrl}/v3/oauth/token`)).status).toBe(405);
  });
});
