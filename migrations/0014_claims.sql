CREATE TABLE `pending_claims` (
	`claim` integer PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	`rows` integer NOT NULL,
	`subject` text NOT NULL,
	`answers` integer NOT NULL,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL,
	`accepted_at` integer
) STRICT;
--> statement-breakpoint
CREATE INDEX `pending_claims_by_series` ON `pending_claims` (`stream`,`series`);
--> statement-breakpoint
DROP TABLE `mass_withdrawals`;

--> statement-breakpoint
ALTER TABLE `wanted_ranges` ADD `period` integer NOT NULL DEFAULT 30000000;
--> statement-breakpoint
UPDATE `wanted_ranges` SET `period` = CASE WHEN `step` > 1 THEN `step` ELSE `settle_delay` / 2 END;
--> statement-breakpoint
CREATE TABLE `settled_before` AS SELECT * FROM `settled_ranges`;
--> statement-breakpoint
DROP TABLE `settled_ranges`;
--> statement-breakpoint
CREATE TABLE `settled_ranges` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	`proof` text NOT NULL,
	`reason` text,
	CHECK(`from_ts` < `to_ts`),
	CHECK(`proof` IN ('rows', 'moved', 'empty', 'lost')),
	PRIMARY KEY(`stream`, `series`, `from_ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `settled_ranges` SELECT `stream`, `series`, `from_ts`, `to_ts`,
	CASE WHEN `proof` = 'rows' AND `reason` IS NOT NULL THEN 'moved' ELSE `proof` END, `reason` FROM `settled_before`;
--> statement-breakpoint
DROP TABLE `settled_before`;
