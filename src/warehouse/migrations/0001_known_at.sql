CREATE TABLE `commits` (
	`seq` integer PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`unknown_from` integer
) STRICT;
--> statement-breakpoint
CREATE TABLE `past_settled_ranges` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	`proof` text NOT NULL,
	`reason` text,
	`since` integer,
	`until` integer NOT NULL,
	PRIMARY KEY(`stream`, `series`, `until`, `from_ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `past_daily_bar_rows` (
	`series` integer NOT NULL,
	`day` text NOT NULL,
	`open` real,
	`high` real,
	`low` real,
	`close` real,
	`volume` real,
	`vwap` real,
	`twap` real,
	`volume_usd` real,
	`record_id` text,
	`details` text,
	`since` integer,
	`until` integer NOT NULL,
	PRIMARY KEY(`series`, `day`, `until`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `past_tick_rows` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
	`price` real,
	`volume` real,
	`tick_volume` real,
	`source` integer NOT NULL,
	`details` text,
	`since` integer,
	`confirmed` integer,
	`until` integer NOT NULL,
	PRIMARY KEY(`series`, `ts`, `until`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `settled_ranges` ADD `since` integer;--> statement-breakpoint
ALTER TABLE `warehouse_state` ADD `history_id` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `daily_bar_rows` ADD `since` integer;--> statement-breakpoint
ALTER TABLE `index_tick_rows` ADD `since` integer;--> statement-breakpoint
ALTER TABLE `index_tick_rows` ADD `confirmed` integer;--> statement-breakpoint
ALTER TABLE `kept_bars` ADD `first_commit` integer;--> statement-breakpoint
ALTER TABLE `kept_bars` ADD `last_commit` integer;--> statement-breakpoint
UPDATE `warehouse_state` SET `history_id` = abs(random() % 9007199254740991);
