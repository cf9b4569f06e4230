import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import {
  malformedBodyFailure,
  noListFailure,
  nullListFailure,
  type ResponseBody,
} from "../../../src/model/response-body.ts";
import { Parking } from "../../../src/service/auth/parking.ts";
import type { RequestSender } from "../../../src/service/client/client.ts";
import type { ServiceRequest } from "../../../src/service/http/request.ts";
import { requestPage } from "../../../src/service/pagination/request-page.ts";

const list: ServiceRequest = { endpoint: "/index-ticker", query: { indexType: "GWA" } };
const optionalList: ServiceRequest = { ...list, mayBeMissing: true };

/** Sends these texts, one a request, the last one again and again. */
function serve(...texts: string[]) {
  const sent: ServiceRequest[] = [];
  const client: RequestSender = {
    onEvent: () => {},
    parking: new Parking({ monotonic: () => 0, boottime: () => 0 }, () => 0),
    request: (request, read) => {
      const text = texts[Math.min(sent.push(request), texts.length) - 1];
      return read({ bytes: new TextEncoder().encode(text), ageMs: 7, asOf: 8, requestedAt: 9 });
    },
  };
  return { client, sent };
}

/** Like the ingest thread, it takes the bytes away. */
async function read(body: ResponseBody) {
  const text = new TextDecoder().decode(structuredClone(body.bytes, { transfer: [body.bytes.buffer] }));
  const { ageMs, asOf, requestedAt } = body;
  if (text === "null") throw nullListFailure();
  if (text === "{}") throw noListFailure("an object");
  if (text === "") throw malformedBodyFailure("empty");
  const { content } = JSON.parse(text) as { content: unknown[] };
  return { rows: content.length, ageMs, asOf, requestedAt };
}

const rows = (count: number) => JSON.stringify({ content: Array<number>(count).fill(0) });
const page = (count: number) => ({ rows: count, ageMs: 7, asOf: 8, requestedAt: 9 });

/** Returns the page, or the code of the failure. */
const request = (client: RequestSender, what = list) =>
  requestPage(client, what, read).catch((error: unknown) =>
    error instanceof Failure ? error.code : "not a failure",
  );

describe("null in place of a list", () => {
  it.each<[what: string, texts: string[], request: ServiceRequest, result: unknown, requests: number]>([
    ["a list needs one request", [rows(2)], list, page(2), 1],
    ["null, then a list: the list", ["null", rows(2)], list, page(2), 2],
    ["null twice: the service may be unable to send one", ["null"], list, "no_list", 2],
    ["null twice where a list may be missing: empty", ["null"], optionalList, page(0), 2],
    ["null, then no list", ["null", "{}"], list, "no_list", 2],
    ["null, then an unreadable body", ["null", ""], optionalList, "malformed_body", 2],
    ["no list", ["{}", rows(2)], list, "no_list", 1],
    ["an unreadable body", ["", rows(2)], list, "malformed_body", 1],
  ])("%s", async (_, texts, what, result, requests) => {
    const { client, sent } = serve(...texts);
    expect(await request(client, what)).toEqual(result);
    expect(sent).toEqual(Array(requests).fill(what));
  });

  it("is an empty list once another request of the kind has got records", async () => {
    const { client } = serve(rows(0), "null", "null", rows(1), "null");
    expect([await request(client), await request(client)]).toEqual([page(0), "no_list"]);
    expect([await request(client), await request(client)]).toEqual([page(1), page(0)]);
  });
});

describe("a kind of list that the service does not send", () => {
  it.each([
    ["null", "no_list", 40],
    ["{}", "no_list", 20],
    // The client and its circuit breaker care for these.
    ["", "malformed_body", 30],
  ])("%j: after twenty such responses none is requested", async (text, code, requests) => {
    const { client, sent } = serve(text);
    for (let i = 0; i < 30; i++) expect(await request(client)).toBe(code);
    expect(sent).toHaveLength(requests);
  });

  it("counts anew after a list, even an empty one", async () => {
    const { client, sent } = serve(...Array<string>(19).fill("{}"), rows(0), "{}");
    for (let i = 0; i < 60; i++) await request(client);
    expect(sent).toHaveLength(19 + 1 + 20);
  });
});
