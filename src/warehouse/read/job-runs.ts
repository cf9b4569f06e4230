import { formatInstant, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";

/** How the last run of a scheduled job ended. */
export interface JobRun {
  readonly job: string;
  /** The moment of the schedule that it served. */
  readonly moment: Micros;
  /** `ok`, `new` for a job that has never run, or the code of the failure. */
  readonly outcome: string;
}

export interface EndedJobRun extends JobRun {
  readonly endedAt: string;
}

export function jobRuns(connection: Connection): EndedJobRun[] {
  return connection
    .statement("SELECT job, moment, ended_at AS endedAt, outcome FROM job_runs ORDER BY job")
    .all() as EndedJobRun[];
}

export function noteJobRun(transaction: Transaction, { job, moment, outcome }: JobRun): void {
  transaction
    .statement(
      `INSERT INTO job_runs (job, moment, ended_at, outcome) VALUES (?, ?, ?, ?)
      ON CONFLICT (job) DO UPDATE SET moment = excluded.moment, ended_at = excluded.ended_at, outcome = excluded.outcome`,
    )
    .run([job, moment, formatInstant(transaction.now), outcome]);
}
