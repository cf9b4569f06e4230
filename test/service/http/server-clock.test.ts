import { describe, expect, it } from "vitest";
import { ServerClock } from "../../../src/service/http/server-clock.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const DATE = Date.parse("2026-03-01T12:00:00Z");

/** Adds responses, given by how long each took and by how much its `Date` is off, and returns the error of the estimate. */
function estimateAfter(responses: readonly (readonly [tookMs: number, offByMs: number])[]): number {
  const clock = new ManualClock();
  const server = new ServerClock(clock);
  const started = clock.boottime();
  for (const [tookMs, offByMs] of responses)
    server.recordResponse(DATE + offByMs, 0, started, started + tookMs);
  return (server.now() ?? Number.NaN) - DATE;
}

describe("the service's clock", () => {
  it("is estimated by the median, so that one wrong header does not matter", () => {
    expect(
      estimateAfter([
        [0, 0],
        [0, 0],
        [0, -3_600_000],
      ]),
    ).toBe(0);
  });

  it("is not moved by responses that took much longer than others", () => {
    const slow = [50_000, 0] as const;
    expect(estimateAfter([[20, 0], slow, slow, slow])).toBe(-10);
    // Without others they are all that is known.
    expect(estimateAfter([slow, slow])).toBe(-25_000);
  });

  it("is right after one response once a host has paused the machine, which its boot clock does not count", () => {
    const clock = new ManualClock(DATE);
    const server = new ServerClock(clock);
    const respond = () => server.recordResponse(clock.now(), 0, clock.boottime(), clock.boottime());
    for (let i = 0; i < 9; i++) respond();
    clock.stepWallClock(85_000);
    expect(server.now()).toBe(DATE);
    respond();
    expect(server.now()).toBe(DATE + 85_000);
    expect(server.skewMs()).toBe(0);
  });
});
