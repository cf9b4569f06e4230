CREATE TABLE `job_runs` (
	`job` text PRIMARY KEY NOT NULL,
	`moment` integer NOT NULL,
	`ended_at` text NOT NULL,
	`outcome` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `size_samples` (
	`at` integer PRIMARY KEY NOT NULL,
	`bytes` integer NOT NULL
) STRICT;
