import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { all, assetsOf, list, SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = {
  ohlcv: assetsOf("BTC"),
  intraday: ticksOf("BTC"),
  exchangeTickers: { exchanges: list("Kraken"), markets: all },
  marketCap: { every: 300 },
  derivatives: { exchanges: list("Deribit"), types: ["perpetuals"], every: 300 },
};

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

it.each(["nested", "escaped"] as const)(
  "H13: secrets that the service echoes (%s) are in no file, of REST and live records",
  async (form) => {
    const faults = [
      Fault.echoSecrets({ on: "*", as: form }),
      // Also in rejected records, in unknown values and in names.
      Fault.echoSecrets({ on: "/exchange", field: "status" }),
      Fault.echoSecrets({ on: "/asset", field: "name", rows: "first" }),
      Fault.echoSecrets({ on: "/index-ticker", field: "timestamp", as: form, rows: 0.1 }),
      Fault.echoSecrets({ on: "ticks", as: form }),
      Fault.echoSecrets({ on: "ticks", field: "timestamp", p: 0.1 }),
      Fault.echoSecrets({ on: "ticks", field: "event", p: 0.05 }),
    ];
    const quirks = { listed: { perMille: 1000, on: "2025-11-01" } };
    const harness = await SupervisorHarness.start({
      sync,
      refreshSeconds: 60,
      simulator: { quirks, faults },
    });
    await harness.advance(600);
    const secrets = harness.simulator.secrets;
    expect(secrets.length).toBeGreaterThanOrEqual(3);
    const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]);
    const folder = dirname(harness.path);
    const leaks = () =>
      filesIn(folder).filter((file) => {
        const bytes = readFileSync(file);
        return forms.some((text) => bytes.includes(text));
      });
    // While the daemon runs, the write-ahead log has most of it.
    expect(leaks()).toEqual([]);
    const count = (sql: string) => Number(harness.query(`SELECT count(*) AS n FROM ${sql}`)[0]?.n);
    expect(count("index_ticks WHERE extra LIKE '%[secret]%' AND source = 'rest'")).toBeGreaterThan(1000);
    expect(count("index_ticks WHERE extra LIKE '%[secret]%' AND source = 'live'")).toBeGreaterThan(5);
    expect(count("ohlcv WHERE extra LIKE '%[secret]%'")).toBeGreaterThan(100);
    expect(count("rejects WHERE raw LIKE '%[secret]%'")).toBeGreaterThan(5);
    expect(count("unknown_fields WHERE sample LIKE '%[secret]%'")).toBeGreaterThan(5);
    await harness.stop();
    expect(leaks()).toEqual([]);
  },
);
