CREATE TABLE `publications` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`published_to` integer NOT NULL,
	`asked_at` integer NOT NULL,
	`asked_to` integer NOT NULL,
	`quiet_margin` integer NOT NULL,
	PRIMARY KEY(`stream`, `series`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `stream_states` ADD `late_by` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `stream_states` ADD `late_at` integer DEFAULT 0 NOT NULL;
