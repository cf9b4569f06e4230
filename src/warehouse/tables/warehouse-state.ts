import { formatTimestamp, type Micros } from "../../model/time.ts";
import type { JobRunRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "./transaction.ts";

/** The service's clock minus this machine's, as the last daemon or backfill measured it. */
export function readClockSkew(connection: Connection): Micros {
  return connection.value<Micros>("SELECT clock_skew FROM warehouse_state");
}

/** Stores the service's clock minus this machine's: the view `gaps` adds it to SQLite's clock. */
export function recordClockSkew(transaction: Transaction, skew: Micros): void {
  const sql = "UPDATE warehouse_state SET clock_skew = @skew WHERE clock_skew <> @skew";
  transaction.run(sql, { skew: Math.round(skew) });
}

/** How many requests of the history a second the service has answered; undefined: not measured yet. */
export function readRequestRate(connection: Connection): number | undefined {
  return connection.value<number | null>("SELECT request_rate FROM warehouse_state") ?? undefined;
}

export function recordRequestRate(transaction: Transaction, requestRate: number): void {
  transaction.run("UPDATE warehouse_state SET request_rate = ?", [requestRate]);
}

/** How the last run of a scheduled job ended. */
export type JobRun = Readonly<Omit<JobRunRow, "endedAt">>;

export function readJobRuns(connection: Connection): JobRunRow[] {
  return connection.rows<JobRunRow>(
    "SELECT job, scheduled_at AS scheduledAt, ended_at AS endedAt, outcome FROM job_runs ORDER BY job",
  );
}

export function recordJobRun(transaction: Transaction, { job, scheduledAt, outcome }: JobRun): void {
  const sql = "REPLACE INTO job_runs (job, scheduled_at, ended_at, outcome) VALUES (?, ?, ?, ?)";
  transaction.run(sql, [job, scheduledAt, formatTimestamp(transaction.now), outcome]);
}
