CREATE TABLE `assets` (
	`id` text PRIMARY KEY NOT NULL,
	`symbol` text,
	`name` text,
	`type` text,
	`status` text,
	`url` text,
	`contract_address` text,
	`first_seen` text NOT NULL,
	`delisted_at` text,
	`absences` integer NOT NULL,
	`quality` text,
	`extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `changes` (
	`seq` integer PRIMARY KEY NOT NULL,
	`stream` text NOT NULL,
	`kind` text NOT NULL,
	`key` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `contracts` (
	`contract` integer PRIMARY KEY NOT NULL,
	`derivative_type` text NOT NULL,
	`id` text NOT NULL,
	`exchange_id` text,
	`market_id` text,
	`exchange_name` text,
	`settlement_currency` text,
	`contract_value` real,
	`value_currency` text,
	`option_type` text,
	`option_strike` real,
	`listing` integer,
	`expiration` integer,
	`details` text,
	`is_described` integer NOT NULL,
	`first_seen` text NOT NULL,
	`delisted_at` text,
	`absences` integer NOT NULL,
	`quality` text,
	`extra` text,
	`exchange` text,
	`pair` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `contracts_by_id` ON `contracts` (`derivative_type`,`id`);
--> statement-breakpoint
CREATE INDEX `contracts_by_pair` ON `contracts` (`pair`);
--> statement-breakpoint
CREATE TABLE `daily_bar_rows` (
	`series` integer NOT NULL,
	`day` text NOT NULL,
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
	PRIMARY KEY(`series`, `day`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `decimal_scales` (
	`low` real PRIMARY KEY NOT NULL,
	`factor` real NOT NULL,
	`unit` integer NOT NULL,
	`zeros` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `derivative_tick_rows` (
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
	PRIMARY KEY(`contract`, `ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `exchange_markets` (
	`exchange_id` text NOT NULL,
	`market_id` text NOT NULL,
	`status` text,
	`qualified` integer,
	`first_seen` text NOT NULL,
	`delisted_at` text,
	`absences` integer NOT NULL,
	`quality` text,
	`extra` text,
	PRIMARY KEY(`exchange_id`, `market_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `exchange_symbols` (
	`exchange_id` text NOT NULL,
	`asset_id` text NOT NULL,
	`symbol` text,
	`first_seen` text NOT NULL,
	`delisted_at` text,
	`absences` integer NOT NULL,
	`quality` text,
	`extra` text,
	PRIMARY KEY(`exchange_id`, `asset_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `exchange_tick_rows` (
	`listing` integer NOT NULL,
	`ts` integer NOT NULL,
	`last` real,
	`bid` real,
	`ask` real,
	`volume` real,
	`last_moved` integer,
	`source` integer NOT NULL,
	`details` text,
	PRIMARY KEY(`listing`, `ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `exchanges` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text,
	`url` text,
	`status` text,
	`first_seen` text NOT NULL,
	`delisted_at` text,
	`absences` integer NOT NULL,
	`quality` text,
	`extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `index_tick_rows` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
	`price` real,
	`volume` real,
	`tick_volume` real,
	`source` integer NOT NULL,
	`details` text,
	PRIMARY KEY(`series`, `ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `job_runs` (
	`job` text PRIMARY KEY NOT NULL,
	`scheduled_at` integer NOT NULL,
	`ended_at` text NOT NULL,
	`outcome` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `kept_bars` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
	`open` real,
	`high` real,
	`low` real,
	`close` real,
	`volume_24h` real,
	`n_ticks` integer,
	`n_doubtful` integer,
	`details` text,
	PRIMARY KEY(`series`, `ts` DESC)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `stale_bars` ON `kept_bars` (`ts`) WHERE n_ticks IS NULL;
--> statement-breakpoint
CREATE TABLE `listings` (
	`listing` integer PRIMARY KEY NOT NULL,
	`exchange_id` text NOT NULL,
	`market_id` text NOT NULL,
	`exchange` text NOT NULL,
	`pair` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `listings_by_ids` ON `listings` (`exchange_id`,`market_id`);
--> statement-breakpoint
CREATE INDEX `listings_by_market` ON `listings` (`market_id`);
--> statement-breakpoint
CREATE INDEX `listings_by_exchange` ON `listings` (`exchange`);
--> statement-breakpoint
CREATE INDEX `listings_by_pair` ON `listings` (`pair`);
--> statement-breakpoint
CREATE TABLE `live_spans` (
	`stream` text NOT NULL,
	`index_type` text NOT NULL,
	`index_id` text NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	PRIMARY KEY(`stream`, `index_type`, `index_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `market_cap_rows` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
	`price` real,
	`volume` real,
	`market_cap` real,
	`total_market_cap` real,
	`free_float_supply` real,
	`total_supply` real,
	`change_24h` real,
	`change_7d` real,
	`change_30d` real,
	`rank` integer,
	`volume_rank` integer,
	`details` text,
	`price_change_24h` real,
	`price_change_7d` real,
	`price_change_30d` real,
	`volume_change_24h` real,
	`volume_change_7d` real,
	`volume_change_30d` real,
	`total_market_cap_change_24h` real,
	`total_market_cap_change_7d` real,
	`total_market_cap_change_30d` real,
	PRIMARY KEY(`series`, `ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `market_rows` (
	`id` text PRIMARY KEY NOT NULL,
	`base_asset_id` text,
	`quote_asset_id` text,
	`first_seen` text NOT NULL,
	`delisted_at` text,
	`absences` integer NOT NULL,
	`quality` text,
	`extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
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
CREATE TABLE `rechecks` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`day` text NOT NULL,
	PRIMARY KEY(`stream`, `series`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `rejects` (
	`reject` integer PRIMARY KEY NOT NULL,
	`stream` text NOT NULL,
	`received_at` text NOT NULL,
	`reason` text NOT NULL,
	`raw` text NOT NULL,
	`request` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `rejects_by_raw` ON `rejects` (`stream`,`raw`);
--> statement-breakpoint
CREATE TABLE `revision_rows` (
	`revision` integer PRIMARY KEY NOT NULL,
	`stream` text NOT NULL,
	`key` integer NOT NULL,
	`ts` integer NOT NULL,
	`before` text NOT NULL,
	`after` text,
	`changed_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `series` (
	`series` integer PRIMARY KEY NOT NULL,
	`index_type` text NOT NULL,
	`index_id` text NOT NULL,
	`name` text NOT NULL,
	`name_from` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `series_by_index` ON `series` (`index_type`,`index_id`);
--> statement-breakpoint
CREATE INDEX `series_by_id` ON `series` (`index_id`);
--> statement-breakpoint
CREATE INDEX `series_by_name` ON `series` (`name`);
--> statement-breakpoint
CREATE TABLE `service_ids` (
	`stream` text NOT NULL,
	`id` text NOT NULL,
	PRIMARY KEY(`stream`, `id`)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE `size_samples` (
	`at` integer PRIMARY KEY NOT NULL,
	`bytes` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `status_changes` (
	`change` integer PRIMARY KEY NOT NULL,
	`entity` text NOT NULL,
	`id` text NOT NULL,
	`field` text NOT NULL,
	`old` text,
	`new` text,
	`seen_at` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `status_changes_by_id` ON `status_changes` (`entity`,`id`);
--> statement-breakpoint
CREATE TABLE `stream_states` (
	`stream` text PRIMARY KEY NOT NULL,
	`rows` integer NOT NULL,
	`newest_ts` integer,
	`last_error` text,
	`last_error_at` text,
	`missing_scopes` text NOT NULL,
	`late_by` integer DEFAULT 0 NOT NULL,
	`late_at` integer DEFAULT 0 NOT NULL,
	`live_offset` integer,
	`serves_running_day` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `targets` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer,
	`settle_delay` integer NOT NULL,
	`step` integer NOT NULL,
	`service_window` integer,
	`is_snapshot` integer NOT NULL,
	`blocked_reason` text,
	`period` integer NOT NULL,
	CHECK(`to_ts` IS NULL OR `from_ts` < `to_ts`),
	CHECK(`step` > 0),
	PRIMARY KEY(`stream`, `series`, `from_ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `unknown_events` (
	`where` text NOT NULL,
	`name` text NOT NULL,
	`first_seen` text NOT NULL,
	`count` integer NOT NULL,
	`sample` text,
	PRIMARY KEY(`where`, `name`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `unknown_fields` (
	`where` text NOT NULL,
	`name` text NOT NULL,
	`first_seen` text NOT NULL,
	`count` integer NOT NULL,
	`sample` text,
	PRIMARY KEY(`where`, `name`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `warehouse_state` (
	`one` integer PRIMARY KEY NOT NULL,
	`epoch` integer NOT NULL,
	`clock_skew` integer NOT NULL,
	`views` text NOT NULL,
	`request_rate` real,
	`service_url` text,
	`changes_id` integer DEFAULT 0 NOT NULL,
	`changes_pruned` integer DEFAULT 0 NOT NULL,
	CHECK(`one` = 1)
) STRICT;
--> statement-breakpoint
CREATE TRIGGER `bar_of_deleted_tick` AFTER DELETE ON `index_tick_rows` BEGIN
	UPDATE `kept_bars` SET `n_ticks` = NULL
		WHERE `series` = OLD.`series` AND `ts` = OLD.`ts` - (OLD.`ts` % 3600000000 + 3600000000) % 3600000000 AND `n_ticks` IS NOT NULL;
END;
--> statement-breakpoint
CREATE TRIGGER `bar_of_updated_tick` AFTER UPDATE OF `series`, `ts`, `price`, `volume`, `details` ON `index_tick_rows` BEGIN
	UPDATE `kept_bars` SET `n_ticks` = NULL
		WHERE `series` = OLD.`series` AND `ts` = OLD.`ts` - (OLD.`ts` % 3600000000 + 3600000000) % 3600000000 AND `n_ticks` IS NOT NULL;
	INSERT INTO `kept_bars` (`series`, `ts`) VALUES (NEW.`series`, NEW.`ts` - (NEW.`ts` % 3600000000 + 3600000000) % 3600000000)
		ON CONFLICT DO UPDATE SET `n_ticks` = NULL WHERE `n_ticks` IS NOT NULL;
END;
--> statement-breakpoint
INSERT INTO `decimal_scales` (`low`, `factor`, `unit`, `zeros`) VALUES
	(0.0, 1.0, 1, ''),
	(1e-8, 1e22, 10000000000000000, '000000'),
	(1e-7, 1e21, 10000000000000000, '00000'),
	(1e-6, 1e20, 10000000000000000, '0000'),
	(1e-5, 1e19, 10000000000000000, '000'),
	(1e-4, 1e18, 10000000000000000, '00'),
	(1e-3, 1e17, 10000000000000000, '0'),
	(1e-2, 1e16, 10000000000000000, ''),
	(1e-1, 1e15, 1000000000000000, ''),
	(1e0, 1e14, 100000000000000, ''),
	(1e1, 1e13, 10000000000000, ''),
	(1e2, 1e12, 1000000000000, ''),
	(1e3, 1e11, 100000000000, ''),
	(1e4, 1e10, 10000000000, ''),
	(1e5, 1e9, 1000000000, ''),
	(1e6, 1e8, 100000000, ''),
	(1e7, 1e7, 10000000, ''),
	(1e8, 1e6, 1000000, ''),
	(1e9, 1e5, 100000, ''),
	(1e10, 1e4, 10000, ''),
	(1e11, 1e3, 1000, ''),
	(1e12, 1e2, 100, ''),
	(1e13, 1e1, 10, ''),
	(1e14, 1e0, 1, '');
--> statement-breakpoint
INSERT INTO `warehouse_state` (`one`, `epoch`, `clock_skew`, `views`, `changes_id`)
	VALUES (1, 0, 0, '', abs(random() % 9007199254740991));
