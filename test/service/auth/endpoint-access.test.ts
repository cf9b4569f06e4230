import { expect, it } from "vitest";
import { EndpointAccess } from "../../../src/service/auth/endpoint-access.ts";
import { ManualClock } from "../../support/manual-clock.ts";

it("a cross-check of a token avoids endpoints that fail at present", () => {
  const access = new EndpointAccess(new ManualClock(), () => 0.5);
  for (const endpoint of ["/market-cap", "/exchange", "/ohlcv"]) access.recordSuccess({ endpoint });
  const failing = ["/exchange", "/asset/{id}"];
  const endpointsFor = (rejected: string, isFailing: (endpoint: string) => boolean) =>
    access.crossCheckRequests(rejected, isFailing).map(({ endpoint }) => endpoint);
  expect(endpointsFor("/ohlcv", (endpoint) => failing.includes(endpoint))).toEqual([
    "/market-cap",
    "/market/{id}",
  ]);
  // If all fail, one lookup is still asked.
  expect(endpointsFor("/ohlcv", () => true)).toEqual(["/asset/{id}"]);
});
