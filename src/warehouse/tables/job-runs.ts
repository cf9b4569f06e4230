import { formatTimestamp } from "../../model/time.ts";
import { type JobRunRow, jobRuns } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "./transaction.ts";

/** How the last run of a scheduled job ended. */
export type JobRun = Readonly<Omit<JobRunRow, "endedAt">>;

export function readJobRuns(connection: Connection): JobRunRow[] {
  return connection.orm.select().from(jobRuns).orderBy(jobRuns.job).all();
}

export function recordJobRun({ now, orm }: Transaction, { job, scheduledAt, outcome }: JobRun): void {
  const set = { scheduledAt, outcome, endedAt: formatTimestamp(now) };
  orm
    .insert(jobRuns)
    .values({ job, ...set })
    .onConflictDoUpdate({ target: jobRuns.job, set })
    .run();
}
