import { formatTimestamp } from "../../model/time.ts";
import type { JobRunRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "./transaction.ts";

/** How the last run of a scheduled job ended. */
export type JobRun = Readonly<Omit<JobRunRow, "endedAt">>;

export function readJobRuns(connection: Connection): JobRunRow[] {
  return connection
    .statement<JobRunRow>(
      "SELECT job, moment AS scheduledAt, ended_at AS endedAt, outcome FROM job_runs ORDER BY job",
    )
    .all();
}

export function recordJobRun(transaction: Transaction, { job, scheduledAt, outcome }: JobRun): void {
  transaction
    .statement(
      `INSERT INTO job_runs (job, moment, ended_at, outcome) VALUES (?, ?, ?, ?)
      ON CONFLICT (job) DO UPDATE SET moment = excluded.moment, ended_at = excluded.ended_at, outcome = excluded.outcome`,
    )
    .run([job, scheduledAt, formatTimestamp(transaction.now), outcome]);
}
