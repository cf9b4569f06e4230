import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** The last run of each scheduled job: a moment that was missed while nothing ran is made up for at the next start. */
export const jobRuns = sqliteTable("job_runs", {
  job: text("job").primaryKey().notNull(),
  /** The moment of the schedule that it served, in microseconds; the run itself may have come later. */
  moment: integer("moment").notNull(),
  endedAt: text("ended_at").notNull(),
  /** `ok`, `new` (never run so far), or the code of the failure. */
  outcome: text("outcome").notNull(),
});

/** How large the warehouse was, every ten minutes of the last two days: tells when the disk will be full. */
export const sizeSamples = sqliteTable("size_samples", {
  /** By the service's clock, in microseconds. */
  at: integer("at").primaryKey().notNull(),
  /** The file and its WAL. */
  bytes: integer("bytes").notNull(),
});
