CREATE TABLE `past_derivative_tick_rows` (
	`contract` integer NOT NULL,
	`ts` integer NOT NULL,
	`price` real,
	`volume` real,
	`volume_usd` real,
	`open_interest` real,
	`open_interest_usd` real,
	`bid` real,
	`ask` real,
	`index_price` real,
	`mark_price` real,
	`funding_rate` real,
	`details` text,
	`since` integer,
	`until` integer NOT NULL,
	`revision` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`contract`, `ts`, `until`, `revision`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `derivative_tick_revisions` ON `past_derivative_tick_rows` (`revision`) WHERE revision > 0;
--> statement-breakpoint
CREATE TABLE `past_exchange_tick_rows` (
	`listing` integer NOT NULL,
	`ts` integer NOT NULL,
	`last` real,
	`bid` real,
	`ask` real,
	`volume` real,
	`last_moved` integer,
	`source` integer NOT NULL,
	`details` text,
	`since` integer,
	`confirmed` integer,
	`until` integer NOT NULL,
	`revision` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`listing`, `ts`, `until`, `revision`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `exchange_tick_revisions` ON `past_exchange_tick_rows` (`revision`) WHERE revision > 0;
--> statement-breakpoint
CREATE TABLE `past_market_cap_rows` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
	`rank` integer,
	`volume_rank` integer,
	`price` real,
	`volume` real,
	`market_cap` real,
	`total_market_cap` real,
	`free_float_supply` real,
	`total_supply` real,
	`change_24h` real,
	`change_7d` real,
	`change_30d` real,
	`price_change_24h` real,
	`price_change_7d` real,
	`price_change_30d` real,
	`volume_change_24h` real,
	`volume_change_7d` real,
	`volume_change_30d` real,
	`total_market_cap_change_24h` real,
	`total_market_cap_change_7d` real,
	`total_market_cap_change_30d` real,
	`details` text,
	`since` integer,
	`until` integer NOT NULL,
	`revision` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`series`, `ts`, `until`, `revision`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `market_cap_revisions` ON `past_market_cap_rows` (`revision`) WHERE revision > 0;
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
	`revision` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`series`, `ts`, `until`, `revision`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `new_past_daily_bar_rows`("series", "ts", "open", "high", "low", "close", "volume", "vwap", "twap", "volume_usd", "record_id", "details", "since", "until", "revision") SELECT "series", "ts", "open", "high", "low", "close", "volume", "vwap", "twap", "volume_usd", "record_id", "details", "since", "until", 0 FROM `past_daily_bar_rows`;
--> statement-breakpoint
DROP TABLE `past_daily_bar_rows`;
--> statement-breakpoint
ALTER TABLE `new_past_daily_bar_rows` RENAME TO `past_daily_bar_rows`;
--> statement-breakpoint
CREATE UNIQUE INDEX `daily_bar_revisions` ON `past_daily_bar_rows` (`revision`) WHERE revision > 0;
--> statement-breakpoint
CREATE TABLE `new_past_tick_rows` (
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
	`revision` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`series`, `ts`, `until`, `revision`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `new_past_tick_rows`("series", "ts", "price", "volume", "tick_volume", "source", "details", "since", "confirmed", "until", "revision") SELECT "series", "ts", "price", "volume", "tick_volume", "source", "details", "since", "confirmed", "until", 0 FROM `past_tick_rows`;
--> statement-breakpoint
DROP TABLE `past_tick_rows`;
--> statement-breakpoint
ALTER TABLE `new_past_tick_rows` RENAME TO `past_tick_rows`;
--> statement-breakpoint
CREATE UNIQUE INDEX `tick_revisions` ON `past_tick_rows` (`revision`) WHERE revision > 0;
--> statement-breakpoint
ALTER TABLE `derivative_tick_rows` ADD `since` integer;
--> statement-breakpoint
ALTER TABLE `exchange_tick_rows` ADD `since` integer;
--> statement-breakpoint
ALTER TABLE `exchange_tick_rows` ADD `confirmed` integer;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `since` integer;
--> statement-breakpoint
CREATE INDEX `revisions_by_row` ON `revision_rows` (`stream`,`key`,`ts`);
--> statement-breakpoint
-- Revisions that are older than the first commit get commits of their own, with numbers below 0.
INSERT INTO `commits` (`seq`, `at`) SELECT -row_number() OVER (ORDER BY `changed_at` DESC), `changed_at`
	FROM (SELECT DISTINCT `changed_at` FROM `revision_rows` WHERE `changed_at` NOT IN (SELECT `at` FROM `commits`));
--> statement-breakpoint
UPDATE `past_tick_rows` AS p SET `revision` = ifnull((SELECT min(v.`revision`) FROM `revision_rows` v WHERE v.`stream` = 'index_ticks'
	AND v.`key` = p.`series` AND v.`ts` = p.`ts` AND v.`changed_at` = (SELECT c.`at` FROM `commits` c WHERE c.`seq` = p.`until`)), 0);
--> statement-breakpoint
-- Of commits that a warehouse has forgotten, with the ticks that were moved.
UPDATE `past_tick_rows` AS p SET (`revision`, `until`) = (SELECT v.`revision`, c.`seq` FROM `revision_rows` v JOIN `commits` c ON c.`seq` < 0 AND c.`at` = v.`changed_at`
		WHERE v.`stream` = 'index_ticks' AND v.`key` = p.`series` AND v.`ts` = p.`ts` AND CAST(json_extract(v.`before`, '$.price') AS REAL) IS p.`price` LIMIT 1)
	WHERE p.`until` NOT IN (SELECT `seq` FROM `commits`) AND EXISTS (SELECT 1 FROM `revision_rows` v JOIN `commits` c ON c.`seq` < 0 AND c.`at` = v.`changed_at`
		WHERE v.`stream` = 'index_ticks' AND v.`key` = p.`series` AND v.`ts` = p.`ts` AND CAST(json_extract(v.`before`, '$.price') AS REAL) IS p.`price`);
--> statement-breakpoint
-- A version that the same commit had written was never known.
INSERT OR IGNORE INTO `past_tick_rows` (`series`, `ts`, `price`, `volume`, `tick_volume`, `source`, `details`, `since`, `until`, `revision`)
	SELECT v.`key`, v.`ts`, CAST(json_extract(v.`before`, '$.price') AS REAL), CAST(json_extract(v.`before`, '$.volume') AS REAL), CAST(json_extract(v.`before`, '$.tick_volume') AS REAL), CASE json_extract(v.`before`, '$.source') WHEN 'live' THEN 1 ELSE 0 END,
	nullif(json_remove(json_patch('{}', v.`before`), '$.source'), '{}'), CASE WHEN c.`seq` > 0 THEN c.`seq` END, c.`seq`, v.`revision`
	FROM `revision_rows` v JOIN (SELECT `at`, max(`seq`) AS `seq` FROM `commits` GROUP BY `at`) c ON c.`at` = v.`changed_at` WHERE v.`stream` = 'index_ticks';
--> statement-breakpoint
UPDATE `past_daily_bar_rows` AS p SET `revision` = ifnull((SELECT min(v.`revision`) FROM `revision_rows` v WHERE v.`stream` = 'ohlcv'
	AND v.`key` = p.`series` AND v.`ts` = p.`ts` AND v.`changed_at` = (SELECT c.`at` FROM `commits` c WHERE c.`seq` = p.`until`)), 0);
--> statement-breakpoint
UPDATE `past_daily_bar_rows` AS p SET (`revision`, `until`) = (SELECT v.`revision`, c.`seq` FROM `revision_rows` v JOIN `commits` c ON c.`seq` < 0 AND c.`at` = v.`changed_at`
		WHERE v.`stream` = 'ohlcv' AND v.`key` = p.`series` AND v.`ts` = p.`ts` AND CAST(json_extract(v.`before`, '$.close') AS REAL) IS p.`close` LIMIT 1)
	WHERE p.`until` NOT IN (SELECT `seq` FROM `commits`) AND EXISTS (SELECT 1 FROM `revision_rows` v JOIN `commits` c ON c.`seq` < 0 AND c.`at` = v.`changed_at`
		WHERE v.`stream` = 'ohlcv' AND v.`key` = p.`series` AND v.`ts` = p.`ts` AND CAST(json_extract(v.`before`, '$.close') AS REAL) IS p.`close`);
--> statement-breakpoint
INSERT OR IGNORE INTO `past_daily_bar_rows` (`series`, `ts`, `open`, `high`, `low`, `close`, `volume`, `vwap`, `twap`, `volume_usd`, `record_id`, `details`, `since`, `until`, `revision`)
	SELECT v.`key`, v.`ts`, CAST(json_extract(v.`before`, '$.open') AS REAL), CAST(json_extract(v.`before`, '$.high') AS REAL), CAST(json_extract(v.`before`, '$.low') AS REAL), CAST(json_extract(v.`before`, '$.close') AS REAL), CAST(json_extract(v.`before`, '$.volume') AS REAL), CAST(json_extract(v.`before`, '$.vwap') AS REAL), CAST(json_extract(v.`before`, '$.twap') AS REAL), CAST(json_extract(v.`before`, '$.volume_usd') AS REAL), json_extract(v.`before`, '$.record_id'),
	nullif(json_remove(json_patch('{}', v.`before`), '$.record_id'), '{}'), CASE WHEN c.`seq` > 0 THEN c.`seq` END, c.`seq`, v.`revision`
	FROM `revision_rows` v JOIN (SELECT `at`, max(`seq`) AS `seq` FROM `commits` GROUP BY `at`) c ON c.`at` = v.`changed_at` WHERE v.`stream` = 'ohlcv';
--> statement-breakpoint
INSERT OR IGNORE INTO `past_exchange_tick_rows` (`listing`, `ts`, `last`, `bid`, `ask`, `volume`, `last_moved`, `source`, `details`, `since`, `until`, `revision`)
	SELECT v.`key`, v.`ts`, CAST(json_extract(v.`before`, '$.last') AS REAL), CAST(json_extract(v.`before`, '$.bid') AS REAL), CAST(json_extract(v.`before`, '$.ask') AS REAL), CAST(json_extract(v.`before`, '$.volume') AS REAL), json_extract(v.`before`, '$.last_moved'), CASE json_extract(v.`before`, '$.source') WHEN 'live' THEN 1 ELSE 0 END,
	nullif(json_remove(json_patch('{}', v.`before`), '$.source', '$.last_moved'), '{}'), NULL, c.`seq`, v.`revision`
	FROM `revision_rows` v JOIN (SELECT `at`, max(`seq`) AS `seq` FROM `commits` GROUP BY `at`) c ON c.`at` = v.`changed_at` WHERE v.`stream` = 'exchange_ticks';
--> statement-breakpoint
INSERT OR IGNORE INTO `past_market_cap_rows` (`series`, `ts`, `price`, `volume`, `market_cap`, `total_market_cap`, `free_float_supply`, `total_supply`, `change_24h`, `change_7d`, `change_30d`, `price_change_24h`, `price_change_7d`, `price_change_30d`, `volume_change_24h`, `volume_change_7d`, `volume_change_30d`, `total_market_cap_change_24h`, `total_market_cap_change_7d`, `total_market_cap_change_30d`, `rank`, `volume_rank`, `details`, `since`, `until`, `revision`)
	SELECT v.`key`, v.`ts`, CAST(json_extract(v.`before`, '$.price') AS REAL), CAST(json_extract(v.`before`, '$.volume') AS REAL), CAST(json_extract(v.`before`, '$.market_cap') AS REAL), CAST(json_extract(v.`before`, '$.total_market_cap') AS REAL), CAST(json_extract(v.`before`, '$.free_float_supply') AS REAL), CAST(json_extract(v.`before`, '$.total_supply') AS REAL), CAST(json_extract(v.`before`, '$.change_24h') AS REAL), CAST(json_extract(v.`before`, '$.change_7d') AS REAL), CAST(json_extract(v.`before`, '$.change_30d') AS REAL), CAST(json_extract(v.`before`, '$.price_change_24h') AS REAL), CAST(json_extract(v.`before`, '$.price_change_7d') AS REAL), CAST(json_extract(v.`before`, '$.price_change_30d') AS REAL), CAST(json_extract(v.`before`, '$.volume_change_24h') AS REAL), CAST(json_extract(v.`before`, '$.volume_change_7d') AS REAL), CAST(json_extract(v.`before`, '$.volume_change_30d') AS REAL), CAST(json_extract(v.`before`, '$.total_market_cap_change_24h') AS REAL), CAST(json_extract(v.`before`, '$.total_market_cap_change_7d') AS REAL), CAST(json_extract(v.`before`, '$.total_market_cap_change_30d') AS REAL), json_extract(v.`before`, '$.rank'), json_extract(v.`before`, '$.volume_rank'),
	nullif(json_remove(json_patch('{}', v.`before`), '$.rank', '$.volume_rank'), '{}'), NULL, c.`seq`, v.`revision`
	FROM `revision_rows` v JOIN (SELECT `at`, max(`seq`) AS `seq` FROM `commits` GROUP BY `at`) c ON c.`at` = v.`changed_at` WHERE v.`stream` = 'market_caps';
--> statement-breakpoint
INSERT OR IGNORE INTO `past_derivative_tick_rows` (`contract`, `ts`, `price`, `volume`, `volume_usd`, `open_interest`, `open_interest_usd`, `bid`, `ask`, `index_price`, `mark_price`, `funding_rate`, `details`, `since`, `until`, `revision`)
	SELECT v.`key`, v.`ts`, CAST(json_extract(v.`before`, '$.price') AS REAL), CAST(json_extract(v.`before`, '$.volume') AS REAL), CAST(json_extract(v.`before`, '$.volume_usd') AS REAL), CAST(json_extract(v.`before`, '$.open_interest') AS REAL), CAST(json_extract(v.`before`, '$.open_interest_usd') AS REAL), CAST(json_extract(v.`before`, '$.bid') AS REAL), CAST(json_extract(v.`before`, '$.ask') AS REAL), CAST(json_extract(v.`before`, '$.index_price') AS REAL), CAST(json_extract(v.`before`, '$.mark_price') AS REAL), CAST(json_extract(v.`before`, '$.funding_rate') AS REAL),
	nullif(json_patch('{}', v.`before`), '{}'), NULL, c.`seq`, v.`revision`
	FROM `revision_rows` v JOIN (SELECT `at`, max(`seq`) AS `seq` FROM `commits` GROUP BY `at`) c ON c.`at` = v.`changed_at` WHERE v.`stream` = 'derivative_ticks';
--> statement-breakpoint
DROP TABLE `revision_rows`;
