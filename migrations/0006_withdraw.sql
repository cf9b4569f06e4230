CREATE TABLE `mass_withdrawals` (
	`withdrawal` integer PRIMARY KEY NOT NULL,
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	`rows` integer NOT NULL,
	`digest` text NOT NULL,
	`answers` integer NOT NULL,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL,
	`believed_at` integer
) STRICT;
--> statement-breakpoint
CREATE INDEX `mass_withdrawals_by_series` ON `mass_withdrawals` (`stream`,`series`);
--> statement-breakpoint
ALTER TABLE `stream_states` ADD `live_offset` integer;