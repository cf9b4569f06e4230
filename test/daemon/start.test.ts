import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { serviceClock } from "../../src/sync/context/context.ts";
import { daemonUnderTest, type Running } from "../support/daemon/daemon-harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const settings = (assets: string, exchanges: string) => `
sync:
  ohlcv: false
  intraday: { GWA: [${assets}], MWA: none, LX: none, days: 1 }
  exchangeTickers: { exchanges: [${exchanges}], markets: [BTC/USD] }
  marketCap: false
  derivatives: false
`;

const wanted = `SELECT w.stream, s.name, w.from_ts AS "from", w.to_ts AS "to" FROM wanted_ranges w JOIN series s USING (series)`;
const errorsOf = async (running: Running) =>
  (JSON.parse((await running.get("/api/daemon")).text) as { errors: { where: string; code: string }[] })
    .errors;

describe("a daemon that starts on a filled warehouse while REST is out of order", () => {
  it.each([
    ["hangs", "GET * stall"],
    ["answers 500", "GET * status 500"],
  ])(
    "and %s hears the live feed from the first moment, and ends at the truth",
    async (_, fault) => {
      const daemon = await daemonUnderTest({ settings: settings("BTC, ETH", "Kraken, Binance") });
      const { clock, simulator, query } = daemon;
      const micros = () => clock.now() * 1000;
      await (await daemon.start()).stop();
      // As if it had been listed only since.
      const database = new Database(daemon.path);
      database.exec("DELETE FROM exchanges WHERE name = 'Coinbase'");
      database.close();
      daemon.configure(settings("BTC", "Kraken, Coinbase"));
      await clock.advance(2 * HOUR);

      // The first thing that the daemon hears comes after the warehouse is open.
      simulator.setFaults(`${fault}\nPOST /oauth/token latency 4s`);
      const begun = micros();
      // G4: this machine does not know the time either.
      const running = await daemon.begin(daemon.path, serviceClock({ serverNow: () => 0 }, clock));
      const heard = (table: string, name: string) =>
        Number(query(`SELECT count(*) AS n FROM ${table} WHERE ${name} AND ts > ${begun}`)[0]?.n);
      await running.until(() => heard("index_ticks", "name = 'BTC'") > 2);
      await running.until(() => heard("exchange_ticks", "exchange = 'Kraken'") > 2);
      expect(micros() - begun).toBeLessThan(3 * MINUTE * 1000);
      expect((await running.get("/readyz")).status).toBe(200);
      expect((await running.get("/healthz")).status).toBe(200);
      // What was deselected meanwhile ended at that moment.
      const ends = () => query(`${wanted} WHERE w.to_ts IS NOT NULL ORDER BY w.stream, s.name`);
      expect(ends().map(({ stream, name }) => [stream, name])).toEqual([
        ["exchange_ticks", "Binance"],
        ["index_ticks", "ETH"],
      ]);
      for (const { to } of ends()) expect(Math.abs(Number(to) - begun)).toBeLessThan(10e6);
      expect(query("SELECT * FROM exchange_ticks WHERE exchange = 'Binance'")).toHaveLength(
        Number(
          query(`SELECT count(*) AS n FROM exchange_ticks WHERE exchange = 'Binance' AND ts < ${begun}`)[0]
            ?.n,
        ),
      );
      // That the lookups cannot be had is told while they are still tried.
      await running.until(async () => (await errorsOf(running)).some((error) => error.where === "assets"));
      const until = clock.monotonic() + 10 * MINUTE;
      await running.until(() => clock.monotonic() > until);

      simulator.setFaults("");
      const healed = clock.monotonic();
      await running.until(() => heard("exchange_ticks", "exchange = 'Coinbase'") > 0);
      expect(clock.monotonic() - healed).toBeLessThan(20 * MINUTE);
      await running.until(running.isFilled);
      const settled = clock.monotonic() + 1.6 * HOUR;
      await running.until(() => clock.monotonic() > settled);
      // Nothing of the outage is missing, neither of what has a history nor of what was only heard.
      const covered = query(
        `SELECT name, min(from_ts) AS "from", count(*) AS n FROM coverage WHERE to_ts > ${begun}
        AND name IN ('BTC', 'Kraken') GROUP BY name`,
      );
      expect(covered).toEqual(["BTC", "Kraken"].map((name) => ({ name, from: expect.any(Number), n: 1 })));
      for (const { from } of covered) expect(Number(from)).toBeLessThan(begun + 60e6);
      await running.stop();
      daemon.expectTruth();
      expect(ends()).toHaveLength(2);
    },
    120_000,
  );
});
