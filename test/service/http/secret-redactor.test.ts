import type { ServerResponse } from "node:http";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { walkListPages } from "../../../src/service/pagination/list-walk.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { reply, sendGzip, sendJson } from "../../support/service/stub-service.ts";

const secret = "kestrel-secret/with+signs=&yes";
const tokenText = "kestrel.token+with/odd=signs";
/** Matches any part of the secret and of the token. */
const canary = /kestrel/i;

/** Everything that a logger, a crash report or an operator could see of an error. */
function inspectAll(error: unknown): string {
  const shown = [inspect(error, { depth: 12, showHidden: true, getters: true }), String(error)];
  if (error instanceof Error) {
    const fields = Object.getOwnPropertyNames(error).map((name) => [
      name,
      (error as unknown as Record<string, unknown>)[name],
    ]);
    shown.push(error.stack ?? "", error.message, inspect(fields, { depth: 12 }), inspectAll(error.cause));
  }
  return shown.join("\n");
}

type BadResponse = (response: ServerResponse) => void;
const echo = `you sent Bearer ${tokenText} and ${secret} and ${encodeURIComponent(tokenText)}`;
const badResponses: Record<string, BadResponse> = {
  "400 that quotes the request": (response) =>
    sendJson(
      response,
      { message: echo, errors: [{ field: echo, rejectedValue: echo, message: `${echo} ${echo} ${echo}` }] },
      400,
    ),
  "400 in plain text": (response) => void response.writeHead(400).end(echo),
  "418": (response) => sendJson(response, { message: echo, errors: [null, 7, { message: null }] }, 418),
  "429": (response) => sendJson(response.setHeader("retry-after", echo), { message: echo }, 429),
  ...Object.fromEntries(
    [401, 403, 404, 409, 500].map((status) => [
      String(status),
      (response: ServerResponse) => sendJson(response, { message: echo }, status),
    ]),
  ),
  "302": (response) =>
    void response.writeHead(302, { location: `http://elsewhere.example/?access_token=${tokenText}` }).end(),
  "a page that is not JSON": (response) => void response.end(echo),
  "a page of another shape": (response) => sendGzip(response, { message: echo }),
  "an odd status line": (response) => void response.writeHead(599, echo).end(),
  "odd headers": (response) =>
    void response.writeHead(200, { "content-encoding": tokenText, date: tokenText }).end(echo),
  "a broken protocol": (response) => void response.socket?.end(`HTTP/1.1 ${echo}\r\n${echo}\r\n\r\n`),
  "a reset": (response) => void response.socket?.resetAndDestroy(),
};

const badTokenResponses: Record<string, BadResponse> = {
  "401 that quotes the secret": (response) => sendJson(response, { error: echo, client_secret: secret }, 401),
  "400 in plain text": (response) => void response.writeHead(400).end(echo),
  "500": (response) => sendJson(response, { error: echo }, 500),
  "200 without a token": (response) => sendJson(response, { error: echo }),
  "200 with an invalid token": (response) =>
    sendJson(response, { access_token: `${tokenText} and more`, expires_in: echo }),
  "200 HTML": (response) => void response.end(`<html>${echo}`),
  "a redirect": (response) =>
    void response.writeHead(307, { location: `http://elsewhere.example/?secret=${secret}` }).end(),
  "a reset": (response) => void response.socket?.resetAndDestroy(),
};

/** Everything that is seen of a client that gets these responses, and what it sent. */
async function collectOutput(
  respond: BadResponse,
  respondToToken: (response: ServerResponse) => unknown = () => 200,
) {
  const { client, clock, stub, logLines, events } = await startServedClient(
    {
      respond: (_, response) => respond(response),
      respondToTokenRequest: (_, response) => respondToToken(response),
      token: { access_token: tokenText },
    },
    { readSecret: async () => `${secret}\n` },
  );
  const range = { from: 0, until: clock.now() * 1000 };
  const walk = { endpoint: "/index-ticker", filters: { indexId: "x" }, ...range } as const;
  const output: string[] = [];
  const collect = async (pages: AsyncIterable<unknown>) => {
    for await (const page of pages) output.push(inspect(page));
  };
  const attempts: readonly (() => Promise<unknown>)[] = [
    () => client.request({ endpoint: "/asset", maxAttempts: 3 }, readPage),
    () => client.request({ endpoint: "/ohlcv", query: { indexType: "LX" }, maxAttempts: 2 }, readPage),
    () => collect(walkHistoryPages(client, walk, readPage)),
    () => collect(walkListPages(client, { endpoint: "/exchange-ticker" }, readPage)),
  ];
  let failed = 0;
  for (const attempt of attempts) {
    const result = await clock.runUntil(attempt().catch((error: unknown) => error));
    if (result instanceof Error) failed++;
    output.push(inspectAll(result));
  }
  expect(failed).toBeGreaterThan(0);
  expect(stub.tokenRequests.length).toBeGreaterThan(0);
  output.push(inspect([logLines, events, client.health()], { depth: 12 }));
  output.push(inspectAll(client.health().lastFailure));
  return { output: output.join("\n"), stub };
}

describe("logs, events and errors contain neither secret nor token when", () => {
  it.each(Object.keys(badResponses))("the service answers with %s", async (name) => {
    const { output } = await collectOutput(badResponses[name] as BadResponse);
    expect(output.length).toBeGreaterThan(500);
    expect(output).not.toMatch(canary);
  });

  it.each(Object.keys(badTokenResponses))("the token endpoint answers with %s", async (name) => {
    const { output } = await collectOutput((response) => reply(response), badTokenResponses[name]);
    expect(output).not.toMatch(canary);
  });

  it("self-check: the requests themselves contain secret and token", async () => {
    const { stub } = await collectOutput(badResponses["500"] as BadResponse);
    expect(JSON.stringify(stub.tokenRequests)).toMatch(canary);
    expect(stub.requests[0]?.token).toBe(tokenText);
  });
});
