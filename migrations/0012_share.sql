CREATE TABLE `changed_ranges` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`stream` text NOT NULL,
	`is_ledger` integer NOT NULL,
	`key` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `changed_ranges_by_key` ON `changed_ranges` (`stream`,`is_ledger`,`key`,`from_ts`,`to_ts`);
--> statement-breakpoint
ALTER TABLE `warehouse_state` ADD `changes_id` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
UPDATE `warehouse_state` SET `changes_id` = abs(random() % 9007199254740991);
