import { onTestFinished } from "vitest";
import type { ExchangeTick } from "../../../src/model/records.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import type { ShareOptions } from "../../../src/share/share-once.ts";
import { runShareLoop } from "../../../src/share/thread/share-loop.ts";
import type { ShareReport } from "../../../src/share/thread/share-messages.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { PASSWORD, type TestPostgres } from "../postgres-server.ts";
import { waitUntil } from "../wait-until.ts";
import { exchangeTick } from "../warehouse/records.ts";
import { settleSnapshot } from "../warehouse/settle-snapshot.ts";
import { writeRecords } from "../warehouse/write-records.ts";
import { HOURS_BEGIN, shareOptions } from "./share-harness.ts";

/** The period of the snapshots. */
export const STEP = 30_000_000;
export const at = (n: number) => HOURS_BEGIN + n * STEP;
export const steps = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
/** Longer than any machine keeps a test from its next step; a test ends a lease by hand. */
export const LEASE_SECONDS = 600;

/** The options of a daemon of a pair. */
export function member(
  server: TestPostgres,
  database: string,
  warehouse: WarehouseWriter,
  name: string,
  clock: Clock = systemClock,
): ShareOptions {
  return shareOptions(server, database, warehouse, {
    role: "pair",
    name,
    leaseSeconds: LEASE_SECONDS,
    clock,
  });
}

/** Stores snapshots of exchange tickers, with their coverage. */
export function observe(
  warehouse: WarehouseWriter,
  times: readonly number[],
  more: Partial<ExchangeTick> = {},
): void {
  warehouse.transaction((transaction) => {
    for (const n of times) {
      writeRecords(transaction, "exchange_ticks", [exchangeTick(at(n), String(n + 1), more)]);
      settleSnapshot(transaction, {
        stream: "exchange_ticks",
        exchangeId: "kraken-id",
        at: at(n),
        cadence: STEP,
      });
    }
  });
}

/** What a test reads of a database that a pair forwards to. */
export class PairDatabase {
  readonly #server: TestPostgres;
  readonly name: string;

  constructor(server: TestPostgres, name: string) {
    this.#server = server;
    this.name = name;
  }

  static async create(server: TestPostgres): Promise<PairDatabase> {
    return new PairDatabase(server, await server.createDatabase());
  }

  /** A killed daemon renews nothing: its lease ends by the database's clock. */
  async endLease(): Promise<void> {
    await this.#server.query(
      this.name,
      "UPDATE mds.lease SET until = clock_timestamp() - interval '1 second'",
    );
  }

  /** What the machine of a killed daemon does: it closes its connections. */
  async endSessionsOfHolder(): Promise<void> {
    await this.#server.query(
      this.name,
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name IN (SELECT holder FROM mds.lease)",
    );
  }

  readLedger(stream: string): Promise<{ from: number; to: number; proof: string }[]> {
    return this.#server.query(
      this.name,
      `SELECT from_ts::double precision AS "from", to_ts::double precision AS "to", proof FROM mds.settled_ranges WHERE stream = $1 ORDER BY 1`,
      [stream],
    );
  }

  async readTimes(marketId: string): Promise<number[]> {
    const sql = "SELECT ts::double precision AS ts FROM mds.exchange_ticks WHERE market_id = $1 ORDER BY ts";
    const rows = await this.#server.query<{ ts: number }>(this.name, sql, [marketId]);
    return rows.map(({ ts }) => ts);
  }

  /** What `gaps` calls lost before `to`. */
  readLost(to: number): Promise<{ from_ts: string; to_ts: string }[]> {
    const sql = "SELECT * FROM mds.gaps WHERE state = 'lost' AND from_ts < $1";
    return this.#server.query(this.name, sql, [to]);
  }

  /** The name of the daemon that holds the lease. */
  async readHolder(): Promise<string | undefined> {
    const sql = "SELECT name FROM mds.lease WHERE holder <> '' AND until > clock_timestamp()";
    const [holder] = await this.#server.query<{ name: string }>(this.name, sql).catch(() => []);
    return holder?.name;
  }
}

/** Runs a member of the pair as the thread does. */
export function startMember(options: ShareOptions) {
  const stop = new AbortController();
  const reports: ShareReport[] = [];
  const running = runShareLoop({
    ...options,
    random: () => 0,
    signal: stop.signal,
    askPassword: async () => PASSWORD,
    report: (report) => void reports.push(report),
  });
  const reach = async (kind: ShareReport["kind"], count = 1) => {
    await waitUntil(() => reports.filter((report) => report.kind === kind).length >= count);
  };
  const end = async () => {
    stop.abort();
    await running;
  };
  onTestFinished(end);
  return { reports, reach, end };
}
