import { expect, it } from "vitest";
import { Fault } from "../simulator/faults.ts";
import { createDaemonHarness, type RunningDaemon } from "../support/daemon/daemon-harness.ts";
import { onlyTicks, skewWallClock } from "../support/sync/backfill-harness.ts";
import { changeFile } from "../support/warehouse/warehouse-file.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const settings = (assets: string, exchanges: string) => `service: { refreshSeconds: 60 }
${onlyTicks(`[${assets}]`, { exchangeTickers: `{ exchanges: [${exchanges}], markets: [BTC/USD] }` })}`;

const targets = `SELECT w.stream, s.name, w.from_ts AS "from", w.to_ts AS "to" FROM targets w JOIN series s USING (series)`;
const errorsOf = async (running: RunningDaemon) =>
  (JSON.parse((await running.getPage("/api/daemon")).text) as { errors: { where: string; code: string }[] })
    .errors;

it("a daemon that starts on a filled warehouse while REST hangs follows the live feed from the start, and matches the service in the end", async () => {
  const daemon = await createDaemonHarness({
    settings: settings("BTC, ETH", "Kraken, Binance"),
    simulator: { refreshSeconds: 60, quirks: { listed: { perMille: 1000, on: "2026-03-01" } } },
  });
  const { clock, simulator, query } = daemon;
  const micros = () => clock.now() * 1000;
  await (await daemon.startFilled()).stop();
  // Delete an exchange, as if the service had listed it only later.
  changeFile(daemon.path, "DELETE FROM exchanges WHERE name = 'Coinbase'");
  daemon.configure(settings("BTC", "Kraken, Coinbase"));
  await clock.advance(2 * HOUR);

  // Delay the token, so that the service has not answered when the warehouse is open.
  simulator.setFaults(Fault.stall(), Fault.latency(4000, { on: "/oauth/token" }));
  const startedAt = micros();
  // G4: the local clock is wrong too.
  const running = await daemon.startServing(daemon.path, skewWallClock(clock, -clock.now()));
  const newRows = (table: string, name: string) =>
    Number(query(`SELECT count(*) AS n FROM ${table} WHERE ${name} AND ts > ${startedAt}`)[0]?.n);
  await running.runUntil(() => newRows("index_ticks", "name = 'BTC'") > 2);
  await running.runUntil(() => newRows("exchange_ticks", "exchange = 'Kraken'") > 2);
  expect(micros() - startedAt).toBeLessThan(3 * MINUTE * 1000);
  expect((await running.getPage("/readyz")).status).toBe(200);
  expect((await running.getPage("/healthz")).status).toBe(200);
  // Targets that were deselected meanwhile have ended: a snapshot stream at the start, a history with what was fetched of it.
  const ends = () => query(`${targets} WHERE w.to_ts IS NOT NULL ORDER BY w.stream, s.name`);
  expect(ends().map(({ stream, name }) => [stream, name])).toEqual([
    ["exchange_ticks", "Binance"],
    ["index_ticks", "ETH"],
  ]);
  const [binance, eth] = ends();
  expect(Math.abs(Number(binance?.to) - startedAt)).toBeLessThan(10e6);
  expect(Number(eth?.to)).toBeLessThan(startedAt - 1.9 * HOUR * 1000);
  expect(query("SELECT * FROM exchange_ticks WHERE exchange = 'Binance'")).toHaveLength(
    Number(
      query(`SELECT count(*) AS n FROM exchange_ticks WHERE exchange = 'Binance' AND ts < ${startedAt}`)[0]
        ?.n,
    ),
  );
  // Failing lookups are reported while they are being retried.
  await running.runUntil(async () => (await errorsOf(running)).some((error) => error.where === "assets"));
  await clock.runUntil(clock.sleep(10 * MINUTE));

  simulator.setFaults();
  const healed = clock.monotonic();
  await running.runUntil(() => newRows("exchange_ticks", "exchange = 'Coinbase'") > 0);
  expect(clock.monotonic() - healed).toBeLessThan(20 * MINUTE);
  await running.runUntil(running.isFilled);
  await clock.runUntil(clock.sleep(1.6 * HOUR));
  // The outage left no gap, neither in history streams nor in snapshot streams.
  const covered = query(
    `SELECT name, min(from_ts) AS "from", count(*) AS n FROM coverage WHERE to_ts > ${startedAt}
        AND name IN ('BTC', 'Kraken') GROUP BY name`,
  );
  expect(covered).toEqual(["BTC", "Kraken"].map((name) => ({ name, from: expect.any(Number), n: 1 })));
  for (const { from } of covered) expect(Number(from)).toBeLessThan(startedAt + 60e6);
  await running.stop();
  daemon.expectMatchesService();
  expect(ends()).toHaveLength(2);
});
