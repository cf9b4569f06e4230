import { expect, it } from "vitest";
import { Fault } from "../simulator/faults.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { onlyTicks } from "../support/sync/backfill-harness.ts";

const PERIOD_MS = 5_000;
const LIMIT_MS = 18 * PERIOD_MS;
const every = { marketCap: "{ every: 30s }", derivatives: "{ every: 30s }" };

/** What REST may refuse while the websocket is refused too, and how many periods of exchange ticks that may cost. */
const limits: [situation: string, maxLost: number, faults: () => Fault[]][] = [
  [
    "/derivatives alone answers 429 with Retry-After: 30",
    0,
    () => [Fault.status(429, { on: "/derivatives/*", retryAfter: "seconds", wait: 30_000 })],
  ],
  [
    "one 429 with Retry-After: 86400",
    13, // It is asked again after a minute.
    () => [Fault.status(429, { on: "/exchange-ticker", total: 1, retryAfter: "seconds", wait: 86_400_000 })],
  ],
  [
    "429 for 3 of every 10 s, whatever the rate",
    1,
    () =>
      Array.from({ length: LIMIT_MS / 10_000 }, (_, at) =>
        Fault.status(429, { from: at * 10_000, to: at * 10_000 + 3_000 }),
      ),
  ],
];

it("B17: a daemon whose feed is refused keeps heads and snapshots current under limits of the service", async () => {
  const daemon = await createDaemonHarness({
    settings: `service: { refreshSeconds: ${PERIOD_MS / 1000} }
${onlyTicks("none", { LX: "all", exchangeTickers: "{ exchanges: all, markets: { top: 5 } }", ...every })}`,
    // Two hours of records: what is filled before shows nothing about limits.
    start: "2026-03-01T02:00:07Z",
    simulator: { refreshSeconds: PERIOD_MS / 1000, quirks: { listed: { perMille: 1000, on: "2026-03-01" } } },
  });
  const { clock, simulator } = daemon;
  const running = await daemon.startFilled();
  const advanceTo = (ms: number) => running.runUntil(() => clock.now() >= ms);
  for (const [situation, maxLost, faults] of limits) {
    await advanceTo(clock.now() + 8 * PERIOD_MS);
    const from = clock.now();
    simulator.requests.clear();
    simulator.setFaults(Fault.dropConnection({ when: "tick" }), Fault.upgradeStatus(503), ...faults());
    await advanceTo(from + LIMIT_MS);
    const stored = daemon.query(
      `SELECT DISTINCT ts / ${PERIOD_MS * 1000} FROM exchange_ticks WHERE ts >= ${from * 1000}`,
    );
    const answered = simulator.requests.list.filter(({ status }) => status === 200);
    expect(
      { lost: LIMIT_MS / PERIOD_MS - stored.length, headSeconds: oldestHead(answered, from) / 1000 },
      situation,
    ).toEqual({
      lost: expect.toSatisfy((lost) => lost <= maxLost),
      headSeconds: expect.toSatisfy((age) => age <= 20),
    });
    simulator.setFaults();
  }
  await running.stop();
});

/** The longest time in which no page of an index was answered. */
function oldestHead(
  answered: readonly { readonly target: string; readonly at: number }[],
  from: number,
): number {
  const heads = answered.filter(({ target }) => target.startsWith("/v3/index-ticker"));
  const byIndex = Map.groupBy(heads, ({ target }) => /indexId=[^&]+/.exec(target)?.[0]);
  expect(byIndex.size).toBe(3);
  const times = [...byIndex.values()].map((each) => [from, ...each.map(({ at }) => at), from + LIMIT_MS]);
  return Math.max(...times.flatMap((each) => each.map((at, i) => at - (each[i - 1] ?? at))));
}
