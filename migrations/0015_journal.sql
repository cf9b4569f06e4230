CREATE TABLE `changes` (
	`seq` integer PRIMARY KEY NOT NULL,
	`stream` text NOT NULL,
	`kind` text NOT NULL,
	`key` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL
) STRICT;
--> statement-breakpoint
DROP TABLE `changed_ranges`;
--> statement-breakpoint
ALTER TABLE `warehouse_state` ADD `changes_pruned` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
UPDATE `warehouse_state` SET `changes_id` = abs(random() % 9007199254740991);
