import type { ServerResponse } from "node:http";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { describeServiceCondition } from "../../../src/model/status/service-condition.ts";
import { requestPriority } from "../../../src/service/http/request.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { type ServedClient, startServedClient } from "../../support/service/client-harness.ts";
import { hang, pause, reply, type StubServiceOptions } from "../../support/service/stub-service.ts";

const minute = 60_000;
const endpoints = ["/market-cap", "/exchange-ticker", "/asset"];
type Respond = (response: ServerResponse, path: string) => void;

/** Three streams without history, polled every five seconds. */
interface Polls extends ServedClient {
  /** When each endpoint got a page. */
  readonly pages: { readonly endpoint: string; readonly at: number }[];
}

let clock: ManualClock;
/** What the service does at present. */
let respond: Respond;
beforeEach(() => {
  clock = new ManualClock();
  respond = serve;
});

const serve: Respond = (response) => reply(response);
const serveAfter =
  (ms: number): Respond =>
  async (response, path) => {
    await pause(clock, ms);
    serve(response, path);
  };
const pauseFor =
  (seconds: number): Respond =>
  (response) => {
    response.setHeader("retry-after", String(seconds));
    reply(response, 503);
  };

async function startPolls(query?: { readonly size: number }): Promise<Polls> {
  const answers: StubServiceOptions["respond"] = ({ path }, response) => respond(response, path);
  const served = await startServedClient({ respond: answers }, {}, clock);
  const pages: Polls["pages"] = [];
  const stop = new AbortController();
  const polls = endpoints.map((endpoint) => {
    const request = { endpoint, ...(query ? { query } : {}), priority: requestPriority.snapshot };
    const record = () => void pages.push({ endpoint, at: clock.monotonic() });
    return served.poll(request, 5_000, stop.signal, record);
  });
  onTestFinished(async () => {
    stop.abort();
    await clock.runUntil(Promise.all(polls));
    await served.client.close();
  });
  await served.pass(5 * minute);
  return { ...served, pages };
}

const polledSince = ({ pages }: Polls, since: number) =>
  new Set(pages.filter(({ at }) => at >= since).map(({ endpoint }) => endpoint));

describe("a service that stops answering", () => {
  it.each([10, 30, 60])("B13: for %i seconds is polled again in three", async (seconds) => {
    const polls = await startPolls();
    const before = polls.stub.requests.length;
    respond = (response) => hang(clock, response);
    await polls.pass(seconds * 1_000);
    expect(polls.client.isDown()).toBe(true);
    expect(polls.stub.requests.length - before).toBeLessThanOrEqual(30);
    respond = serve;
    const since = clock.monotonic();
    await polls.pass(3_000);
    expect(polledSince(polls, since)).toEqual(new Set(endpoints));
  });

  it("B15: at one endpoint gives it its time", async () => {
    const { client, stub, pass } = await startPolls();
    respond = (response, path) =>
      path.endsWith("/asset") ? serveAfter(8_000)(response, path) : serve(response, path);
    const before = stub.requests.length;
    await pass(8_000);
    expect(client.isDown()).toBe(false);
    expect(stub.requests.slice(before).filter(({ path }) => path.endsWith("/asset"))).toHaveLength(1);
  });

  it("B15: but answers after eight seconds gets each request once", async () => {
    const polls = await startPolls();
    respond = serveAfter(8_000);
    await polls.pass(minute);
    expect(polls.client.isDown()).toBe(false);
    const [sent, received] = [polls.stub.requests.length, polls.pages.length];
    await polls.pass(10 * minute);
    expect(polls.pages.length - received).toBeGreaterThan(3 * 10 * 4);
    expect(polls.stub.requests.length - sent - (polls.pages.length - received)).toBeLessThanOrEqual(3);
  });
});

describe("503 with Retry-After for everything", () => {
  it.each([
    [5, 18],
    [30, 8],
    [3600, 6],
  ])("B1: of %i s costs %i requests in the first minute", async (seconds, atMost) => {
    const polls = await startPolls();
    const before = polls.stub.requests.length;
    respond = pauseFor(seconds);
    await polls.pass(minute - 1);
    expect(polls.stub.requests.length - before).toBeLessThanOrEqual(atMost);
    const { condition } = polls.client.health();
    expect(describeServiceCondition(condition)).toBe(
      "the service does not answer, and the service asked for a pause (Retry-After)",
    );
    respond = serve;
    const since = clock.monotonic();
    await polls.pass(Math.min(seconds, 900) * 1_000 + 3_000);
    expect(polledSince(polls, since)).toEqual(new Set(endpoints));
  });
});

it("B4: an outage does not make the pages smaller", async () => {
  const polls = await startPolls({ size: 2_000 });
  respond = (response) => reply(response, 502);
  await polls.pass(minute);
  respond = serve;
  await polls.pass(minute);
  expect(polls.logLines.map(({ message }) => message)).not.toContain("service refuses larger pages");
  expect(polls.stub.requests.at(-1)?.query.size).toBe("2000");
});
