CREATE TABLE `row_parts` (
	`part` integer PRIMARY KEY NOT NULL,
	`opened_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
INSERT INTO `row_parts` (`part`, `opened_at`) VALUES (0, 0);
--> statement-breakpoint
ALTER TABLE `exchange_tick_rows` RENAME TO `exchange_tick_slots`;
--> statement-breakpoint
ALTER TABLE `exchange_tick_slots` RENAME COLUMN `listing` TO `slot`;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` RENAME TO `market_cap_slots`;
--> statement-breakpoint
ALTER TABLE `market_cap_slots` RENAME COLUMN `series` TO `slot`;
--> statement-breakpoint
ALTER TABLE `derivative_tick_rows` RENAME TO `derivative_tick_slots`;
--> statement-breakpoint
ALTER TABLE `derivative_tick_slots` RENAME COLUMN `contract` TO `slot`;
