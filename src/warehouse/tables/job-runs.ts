import { formatTimestamp, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "./transaction.ts";

/** How the last run of a scheduled job ended. */
export interface JobRun {
  readonly job: string;
  /** The time of the schedule that started it. */
  readonly scheduledAt: Micros;
  /** `ok`, `new` for a job that has never run, or the code of the failure. */
  readonly outcome: string;
}

interface FinishedJobRun extends JobRun {
  readonly endedAt: string;
}

export function readJobRuns(connection: Connection): FinishedJobRun[] {
  return connection
    .statement("SELECT job, moment AS scheduledAt, ended_at AS endedAt, outcome FROM job_runs ORDER BY job")
    .all() as FinishedJobRun[];
}

export function recordJobRun(transaction: Transaction, { job, scheduledAt, outcome }: JobRun): void {
  transaction
    .statement(
      `INSERT INTO job_runs (job, moment, ended_at, outcome) VALUES (?, ?, ?, ?)
      ON CONFLICT (job) DO UPDATE SET moment = excluded.moment, ended_at = excluded.ended_at, outcome = excluded.outcome`,
    )
    .run([job, scheduledAt, formatTimestamp(transaction.now), outcome]);
}
