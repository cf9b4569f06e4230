import { describe, expect, it } from "vitest";
import { sendRequest, startRestClient } from "../../support/simulator/rest-client.ts";

describe("the token endpoint", () => {
  it('"Response 200: token response": access_token, scope, expires_in, token_type', async () => {
    const caller = await startRestClient({ scopes: ["read:ohlcv", "read:LX"] });
    const { status, body } = await caller.requestToken();
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.any(String),
      scope: "read:ohlcv read:LX",
      expires_in: 86_400,
      token_type: "Bearer",
    });
  });

  it('"JSON body": a form is refused', async () => {
    const caller = await startRestClient();
    const { status, body } = await caller.requestToken({}, "application/x-www-form-urlencoded");
    expect(status).toBe(400);
    expect(body.status).toBe("BAD_REQUEST");
  });

  it('"Audience selects the target": a websocket token opens nothing on REST', async () => {
    const caller = await startRestClient();
    const { body } = await caller.requestToken({ audience: caller.simulator.wsUrl });
    const answer = await caller.get("/asset", {}, { authorization: `Bearer ${body.access_token}` });
    expect(answer.status).toBe(401);
  });

  it("refuses an audience that is neither address", async () => {
    const caller = await startRestClient();
    const { status, body } = await caller.requestToken({ audience: "https://elsewhere.example" });
    expect(status).toBe(400);
    expect(body.errors[0].field).toBe("audience");
  });

  it('"grant_type (string, client_credentials)": any other is refused by name', async () => {
    const caller = await startRestClient();
    const { status, body } = await caller.requestToken({ grant_type: "password" });
    expect(status).toBe(400);
    expect(body.errors[0]).toMatchObject({ field: "grant_type", rejectedValue: "password" });
  });

  it("answers a wrong secret with 401, and the old one too once it is rotated", async () => {
    const caller = await startRestClient({ clientSecret: "old" });
    expect((await caller.requestToken({ client_secret: "wrong" })).status).toBe(401);
    caller.simulator.rotateSecret("new");
    expect((await caller.requestToken({ client_secret: "old" })).status).toBe(401);
    expect((await caller.requestToken({ client_secret: "new" })).status).toBe(200);
  });

  it('"Token lifetime: 24 hours": the token ends by the service\'s clock', async () => {
    const caller = await startRestClient();
    await caller.clock.advance(86_399_000);
    expect((await caller.get("/asset")).status).toBe(200);
    await caller.clock.advance(1000);
    expect((await caller.get("/asset")).status).toBe(401);
  });

  it('"`expires_in` states the remaining seconds" of a token that is handed out again', async () => {
    const caller = await startRestClient({ quirks: { tokenReissue: "same" }, tokenSeconds: 3600 });
    const first = await caller.requestToken();
    await caller.clock.advance(600_000);
    const second = await caller.requestToken();
    expect(second.body.access_token).toBe(first.body.access_token);
    expect(second.body.expires_in).toBe(3000);
  });

  it("can hand out tokens that must be encoded in a URL", async () => {
    const caller = await startRestClient({ quirks: { awkwardTokens: true } });
    const { body } = await caller.requestToken();
    expect(encodeURIComponent(body.access_token)).not.toBe(body.access_token);
    expect((await caller.get("/asset")).status).toBe(200);
  });

  it("answers every token issued so far with 401 once they are revoked", async () => {
    const caller = await startRestClient();
    caller.simulator.revokeTokens();
    expect((await caller.get("/asset")).status).toBe(401);
    await caller.signIn();
    expect((await caller.get("/asset")).status).toBe(200);
  });

  it('"The token carries the scopes": a granted scope shows in new tokens alone', async () => {
    const caller = await startRestClient({ scopes: ["read:ohlcv"] });
    caller.simulator.grantScopes(["read:ohlcv", "read:market-cap"]);
    expect((await caller.get("/market-cap")).status).toBe(403);
    await caller.signIn();
    expect((await caller.get("/market-cap")).status).toBe(200);
  });

  it("answers GET on the token path and POST elsewhere with 405", async () => {
    const caller = await startRestClient();
    const { baseUrl } = caller.simulator;
    expect((await sendRequest(`${baseUrl}/v3/oauth/token`)).status).toBe(405);
  });
});
