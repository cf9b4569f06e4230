import { describe, expect, it } from "vitest";
import { Fault } from "../simulator/faults.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { startHeartbeatServer } from "../support/daemon/heartbeat-server.ts";
import { barsOf, onlyTicks } from "../support/sync/backfill-harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ticks = onlyTicks("[BTC]");
const bars = onlyTicks("none", { intraday: "false", ohlcv: barsOf("[BTC]") });
const NO_SOCKET = [Fault.upgradeStatus(503), Fault.dropConnection({ when: "tick" })];

describe("a daemon whose service does not answer", () => {
  it("shows at once on its pages, and after five minutes is unhealthy, says why, and sends no heartbeat", async () => {
    const heartbeat = await startHeartbeatServer();
    const settings = `telemetry: { heartbeatUrl: "${heartbeat.origin}" }\n${ticks}`;
    const daemon = await createDaemonHarness({ settings });
    const { clock, simulator } = daemon;
    const running = await daemon.startFilled();
    const health = () => running.getPage("/healthz");
    // The pages are live no longer than REST or the feed gets answers, also between two ticks, although the daemon is healthy.
    simulator.setFaults(Fault.status(500));
    for (let i = 0; i < 20; i++) {
      await clock.runUntil(clock.sleep(9_000));
      expect(await running.readProblem()).toBeNull();
    }
    simulator.setFaults();
    await clock.runUntil(clock.sleep(MINUTE));
    simulator.setFaults(Fault.refuse({ to: 86_400_000 }));
    await clock.runUntil(clock.sleep(10_000));
    expect(await running.readProblem()).toBe("the service does not answer");
    expect(await health()).toEqual({ status: 200, text: "ok\n" });
    simulator.setFaults();
    await running.runUntil(async () => (await running.readProblem()) === null);

    const causes: [fault: Fault, cause: RegExp][] = [
      [Fault.status(500), /the service failed|server_failure/],
      [Fault.stall(), /timeout/],
    ];
    const { origin } = new URL(simulator.baseUrl);
    for (const [fault, cause] of causes) {
      simulator.setFaults(fault, ...NO_SOCKET);
      await clock.runUntil(clock.sleep(4 * MINUTE));
      expect(await health(), fault.name).toEqual({ status: 200, text: "ok\n" });
      await clock.runUntil(clock.sleep(6 * MINUTE));
      const { status, text } = await health();
      expect(status, fault.name).toBe(503);
      expect(text).toMatch(
        new RegExp(`^no useful answer from ${origin} since 2026-03-01 1[23]:\\d\\d:\\d\\d UTC: `),
      );
      expect(text).toMatch(cause);
      expect(text.trim().split("\n")).toHaveLength(1);
      expect(await running.readMetric("healthy")).toBe(0);
      const { tone, sentence } = JSON.parse((await running.getPage("/api/daemon")).text);
      expect({ tone, sentence }).toEqual({ tone: "ill", sentence: `Stuck: ${text.trim()}.` });
      expect(JSON.parse((await running.getPage("/api/status")).text).problem).toBe(text.trim());

      const sent = heartbeat.received.length;
      await clock.runUntil(clock.sleep(3 * MINUTE));
      expect(heartbeat.received.length).toBe(sent);
      simulator.setFaults();
      await running.runUntil(async () => (await health()).status === 200);
      await running.runUntil(() => heartbeat.received.length > sent);
    }
    await running.stop();
  });

  it("is healthy while ticks arrive live, and while REST fails for less than the setting", async () => {
    const daemon = await createDaemonHarness({ settings: `telemetry: { unhealthyAfter: 30m }\n${ticks}` });
    const { clock, simulator } = daemon;
    const running = await daemon.startFilled();
    const passed = (ms: number) => clock.runUntil(clock.sleep(ms));
    simulator.setFaults(Fault.status(500));
    await passed(40 * MINUTE);
    expect((await running.getPage("/healthz")).status).toBe(200);
    simulator.setFaults(Fault.status(500), ...NO_SOCKET);
    await passed(25 * MINUTE);
    expect((await running.getPage("/healthz")).status).toBe(200);
    await passed(15 * MINUTE);
    expect((await running.getPage("/healthz")).status).toBe(503);
    await running.stop();
  });

  it("is healthy while nothing is due, and while a single request fails", async () => {
    const daemon = await createDaemonHarness({ settings: bars });
    const { clock, simulator } = daemon;
    const running = await daemon.startFilled();
    const unhealthy: number[] = [];
    const watch = async (ms: number) => {
      for (const end = clock.now() + ms; clock.now() < end; ) {
        await clock.runUntil(clock.sleep(5 * MINUTE));
        if ((await running.getPage("/healthz")).status !== 200) unhealthy.push(clock.now());
      }
    };
    await watch(50 * MINUTE);
    simulator.setFaults(Fault.status(500, { total: 2 }));
    await watch(2 * HOUR);
    expect(unhealthy).toEqual([]);
    simulator.setFaults(Fault.status(500));
    await watch(90 * MINUTE);
    expect(unhealthy.length).toBeGreaterThan(0);
    await running.stop();
  });

  it("is not ready before the first answer, and says which address it waits for, and why", async () => {
    const daemon = await createDaemonHarness({ settings: ticks });
    const { clock, simulator } = daemon;
    simulator.setFaults(Fault.refuse({ to: 1_200_000 }));
    await clock.advance(1_000);
    const running = await daemon.startServing();
    const { origin } = new URL(simulator.baseUrl);
    const waits = `not ready: waiting for the service at ${origin}: `;
    await running.runUntil(async () => (await running.getPage("/readyz")).text.startsWith(waits));
    const ready = await running.getPage("/readyz");
    expect(ready.status).toBe(503);
    expect(ready.text).toMatch(/connection_refused|auth_unreachable/);
    const { sentence } = JSON.parse((await running.getPage("/api/daemon")).text);
    expect(sentence).toContain(`Starting: waiting for the service at ${origin}: `);
    await running.runUntil(async () => (await running.getPage("/healthz")).status === 503);
    expect((await running.getPage("/healthz")).text).toContain(`${origin} since the start at 2026-03-01`);
    await running.runUntil(async () => (await running.getPage("/readyz")).status === 200);
    expect((await running.getPage("/healthz")).status).toBe(200);
    await running.stop();
  });

  it("does not call itself synced before it knows what to sync, and is unhealthy while a lookup only fails", async () => {
    const daemon = await createDaemonHarness({ settings: ticks });
    const { clock, simulator } = daemon;
    simulator.setFaults(Fault.status(500, { on: "/asset" }));
    const startedAt = clock.now();
    const running = await daemon.startServing();
    const seen = new Map<string, string>();
    const watchUntil = (condition: () => unknown) =>
      running.runUntil(async () => {
        const { sentence, tone } = JSON.parse((await running.getPage("/api/daemon")).text);
        seen.set(sentence, tone);
        return condition();
      });
    const health = () => running.getPage("/healthz");
    await watchUntil(() => clock.now() > startedAt + 50_000);
    expect(await health()).toEqual({ status: 200, text: "ok\n" });
    expect([...seen.keys()]).toContain("Starting: looking up what to sync.");
    await watchUntil(() => clock.now() > startedAt + 70_000);
    const { status, text } = await health();
    expect({ status, text }).toEqual({
      status: 503,
      text: expect.stringMatching(
        /^nothing is synced yet: \/asset fails \(500\) since 2026-03-01 12:00:\d\d UTC\n$/,
      ),
    });
    expect(seen.get(`Stuck: ${text.trim()}.`)).toBe("ill");
    expect([...seen.values()]).not.toContain("well");
    expect([...seen.keys()].join("\n")).not.toContain("Complete");
    expect(await running.readMetric("healthy")).toBe(0);

    simulator.setFaults();
    const stored = () => daemon.query("SELECT rows FROM stream_states WHERE stream = 'index_ticks'")[0]?.rows;
    await watchUntil(() => Number(stored()) > 0);
    expect((await health()).status).toBe(200);
    await running.stop();
  });
});
