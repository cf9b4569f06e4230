CREATE TABLE `service_ids` (
	`stream` text NOT NULL,
	`id` text NOT NULL,
	PRIMARY KEY(`stream`, `id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `service_ids` (`stream`, `id`) SELECT 'assets', `id` FROM `assets`
	UNION ALL SELECT 'markets', `id` FROM `market_rows` UNION ALL SELECT 'exchanges', `id` FROM `exchanges`;
--> statement-breakpoint
ALTER TABLE `warehouse_state` ADD `service_url` text;
