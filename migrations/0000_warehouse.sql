CREATE TABLE `decimal_scales` (
	`low` real PRIMARY KEY NOT NULL,
	`factor` real NOT NULL,
	`unit` integer NOT NULL,
	`zeros` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `live_spans` (
	`stream` text NOT NULL,
	`index_type` text NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	PRIMARY KEY(`stream`, `index_type`)
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
CREATE TABLE `settled_ranges` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	`proof` text NOT NULL,
	`reason` text,
	CHECK(`from_ts` < `to_ts`),
	CHECK(`proof` IN ('rows', 'empty', 'lost')),
	PRIMARY KEY(`stream`, `series`, `from_ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `stream_states` (
	`stream` text PRIMARY KEY NOT NULL,
	`rows` integer NOT NULL,
	`newest_ts` integer,
	`last_error` text,
	`last_error_at` text,
	`missing_scopes` text NOT NULL
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
CREATE TABLE `wanted_ranges` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer,
	`settle_delay` integer NOT NULL,
	`step` integer NOT NULL,
	`kept_for` integer,
	`observed` integer NOT NULL,
	`hindrance` text,
	CHECK(`to_ts` IS NULL OR `from_ts` < `to_ts`),
	CHECK(`step` > 0),
	PRIMARY KEY(`stream`, `series`, `from_ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `warehouse_state` (
	`one` integer PRIMARY KEY NOT NULL,
	`epoch` integer NOT NULL,
	`clock_skew` integer NOT NULL,
	`views` text NOT NULL,
	CHECK(`one` = 1)
) STRICT;
--> statement-breakpoint
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
	`aside` text,
	`described` integer NOT NULL,
	`first_seen` text NOT NULL,
	`delisted_at` text,
	`absences` integer NOT NULL,
	`quality` text,
	`extra` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `contracts_by_id` ON `contracts` (`derivative_type`,`id`);
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
CREATE TABLE `series` (
	`series` integer PRIMARY KEY NOT NULL,
	`index_type` text NOT NULL,
	`index_id` text NOT NULL,
	`name` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `series_by_index` ON `series` (`index_type`,`index_id`);
--> statement-breakpoint
CREATE INDEX `series_by_id` ON `series` (`index_id`);
--> statement-breakpoint
CREATE INDEX `series_by_name` ON `series` (`name`);
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
	`aside` text,
	PRIMARY KEY(`series`, `day`)
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
	`aside` text,
	PRIMARY KEY(`contract`, `ts`)
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
	`aside` text,
	PRIMARY KEY(`listing`, `ts`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `index_tick_rows` (
	`series` integer NOT NULL,
	`ts` integer NOT NULL,
	`price` real,
	`volume` real,
	`tick_volume` real,
	`source` integer NOT NULL,
	`aside` text,
	PRIMARY KEY(`series`, `ts`)
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
	`aside` text,
	PRIMARY KEY(`series`, `ts`)
) STRICT, WITHOUT ROWID;
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
INSERT INTO `warehouse_state` (`one`, `epoch`, `clock_skew`, `views`) VALUES (1, 0, 0, '');
