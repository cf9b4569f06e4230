import type { ServerResponse } from "node:http";
import { inspect } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { walkBackwards } from "../../../src/service/pagination/history-walk.ts";
import { followList } from "../../../src/service/pagination/list-walk.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import { json, type StubService, startStub, zipped } from "../../support/service/stub-service.ts";

const secret = "kestrel-secret/with+signs=&yes";
const tokenText = "kestrel.token+with/odd=signs";
/** Even a part of either is too much. */
const canary = /kestrel/i;

let stub: StubService | undefined;
afterEach(async () => stub?.stop());

/** Everything that a logger, a crash report or a curious operator could see of an error. */
function everythingOf(error: unknown): string {
  const shown = [inspect(error, { depth: 12, showHidden: true, getters: true }), String(error)];
  if (error instanceof Error) {
    const fields = Object.getOwnPropertyNames(error).map((name) => [
      name,
      (error as unknown as Record<string, unknown>)[name],
    ]);
    shown.push(error.stack ?? "", error.message, inspect(fields, { depth: 12 }), everythingOf(error.cause));
  }
  return shown.join("\n");
}

type Bad = (response: ServerResponse) => void;
const echo = `you sent Bearer ${tokenText} and ${secret} and ${encodeURIComponent(tokenText)}`;
const bads: Record<string, Bad> = {
  "400 that quotes what it got": (response) =>
    json(
      response,
      { message: echo, errors: [{ field: echo, rejectedValue: echo, message: `${echo} ${echo} ${echo}` }] },
      400,
    ),
  "400 in plain text": (response) => void response.writeHead(400).end(echo),
  "401": (response) => json(response, { message: echo }, 401),
  "403": (response) => json(response, { message: echo }, 403),
  "404": (response) => json(response, { message: echo }, 404),
  "409": (response) => json(response, { message: echo }, 409),
  "418": (response) => json(response, { message: echo, errors: [null, 7, { message: null }] }, 418),
  "429": (response) => json(response.setHeader("retry-after", echo), { message: echo }, 429),
  "500": (response) => json(response, { message: echo }, 500),
  "302": (response) =>
    void response.writeHead(302, { location: `http://elsewhere.example/?access_token=${tokenText}` }).end(),
  "a page that is no JSON": (response) => void response.end(echo),
  "a page of another shape": (response) => zipped(response, { message: echo }),
  "an odd status line": (response) => void response.writeHead(599, echo).end(),
  "odd headers": (response) =>
    void response.writeHead(200, { "content-encoding": tokenText, date: tokenText }).end(echo),
  "a broken protocol": (response) => void response.socket?.end(`HTTP/1.1 ${echo}\r\n${echo}\r\n\r\n`),
  "a reset": (response) => void response.socket?.resetAndDestroy(),
};

const grants: Record<string, Bad> = {
  "401 that quotes the secret": (response) => json(response, { error: echo, client_secret: secret }, 401),
  "400 in plain text": (response) => void response.writeHead(400).end(echo),
  "500": (response) => json(response, { error: echo }, 500),
  "200 without a token": (response) => json(response, { error: echo }),
  "200 with a token that is none": (response) =>
    json(response, { access_token: `${tokenText} and more`, expires_in: echo }),
  "200 HTML": (response) => void response.end(`<html>${echo}`),
  "a redirect": (response) =>
    void response.writeHead(307, { location: `http://elsewhere.example/?secret=${secret}` }).end(),
  "a reset": (response) => void response.socket?.resetAndDestroy(),
};

async function witness(answer: Bad, grant?: Bad): Promise<string> {
  const clock = new TurnedClock();
  stub = await startStub({
    clock,
    answer: (_, response) => answer(response),
    grant: (_, response) =>
      grant
        ? grant(response)
        : json(response, { access_token: tokenText, expires_in: 86_400, token_type: "Bearer" }),
  });
  const { client, logged, observed } = clientOf(stub.baseUrl, clock, {
    readSecret: async () => `${secret}\n`,
  });
  const seen: string[] = [];
  const attempts = [
    () => client.request({ endpoint: "/asset", attempts: 3 }, readPage),
    () => client.request({ endpoint: "/ohlcv", query: { indexType: "LX" }, attempts: 2 }, readPage),
    async () => {
      const walk = { endpoint: "/index-ticker", filters: {}, from: 0, until: clock.now() * 1000 } as const;
      for await (const { position } of walkBackwards(client, walk, readPage)) seen.push(inspect(position));
    },
    async () => {
      for await (const { position } of followList(client, { endpoint: "/exchange-ticker" }, readPage))
        seen.push(inspect(position));
    },
  ];
  let failed = 0;
  for (const attempt of attempts) {
    await clock.runUntil(
      attempt().then(
        () => {},
        (error: unknown) => {
          failed++;
          seen.push(everythingOf(error));
        },
      ),
    );
  }
  expect(failed).toBeGreaterThan(0);
  expect(stub.tokenRequests.length).toBeGreaterThan(0);
  seen.push(
    inspect(logged, { depth: 12 }),
    inspect(observed, { depth: 12 }),
    everythingOf(client.health().lastFailure),
  );
  seen.push(inspect(client.health(), { depth: 12 }));
  return seen.join("\n");
}

describe("no secret and no token stands in anything that the client ever says", () => {
  it.each(Object.keys(bads))("the service answers with %s", async (name) => {
    const said = await witness(bads[name] as Bad);
    expect(said.length).toBeGreaterThan(500);
    expect(said).not.toMatch(canary);
  });

  it.each(Object.keys(grants))("the token endpoint answers with %s", async (name) => {
    expect(await witness((response) => zipped(response, { content: [] }), grants[name] as Bad)).not.toMatch(
      canary,
    );
  });

  it("the canary sings when it should: the request itself carries both", async () => {
    await witness(bads["500"] as Bad);
    expect(JSON.stringify(stub?.tokenRequests)).toMatch(canary);
    expect(stub?.requests[0]?.token).toBe(tokenText);
  });
});
