CREATE TABLE `new_daily_bar_rows` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
	`open` real,
	`high` real,
	`low` real,
	`close` real,
	`volume` real,
	`volume_usd` real,
	`vwap` real,
	`twap` real,
	`record_id` text,
	`details` text,
	`since` integer,
	PRIMARY KEY(`series`, `ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `new_daily_bar_rows` SELECT `series`, CAST(strftime('%s', `day`) AS INTEGER) * 1000000, `open`, `high`, `low`, `close`,
	`volume`, `volume_usd`, `vwap`, `twap`, `record_id`, `details`, `since` FROM `daily_bar_rows` ORDER BY `series`, `day`;
--> statement-breakpoint
DROP TABLE `daily_bar_rows`;
--> statement-breakpoint
ALTER TABLE `new_daily_bar_rows` RENAME TO `daily_bar_rows`;
--> statement-breakpoint
CREATE UNIQUE INDEX `daily_bars_by_day` ON `daily_bar_rows` (`series`,CAST(strftime('%Y-%m-%d', ts / 1000000, 'unixepoch') AS TEXT));
--> statement-breakpoint
CREATE TABLE `new_past_daily_bar_rows` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
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
	PRIMARY KEY(`series`, `ts`, `until`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `new_past_daily_bar_rows` SELECT `series`, CAST(strftime('%s', `day`) AS INTEGER) * 1000000, `open`, `high`, `low`, `close`,
	`volume`, `vwap`, `twap`, `volume_usd`, `record_id`, `details`, `since`, `until` FROM `past_daily_bar_rows` ORDER BY `series`, `day`, `until`;
--> statement-breakpoint
DROP TABLE `past_daily_bar_rows`;
--> statement-breakpoint
ALTER TABLE `new_past_daily_bar_rows` RENAME TO `past_daily_bar_rows`;
