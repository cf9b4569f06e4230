ALTER TABLE `contracts` ADD `exchange` text;--> statement-breakpoint
ALTER TABLE `contracts` ADD `pair` text;--> statement-breakpoint
CREATE INDEX `contracts_by_pair` ON `contracts` (`pair`);--> statement-breakpoint
UPDATE `contracts` SET
	`exchange` = coalesce((SELECT e.`name` FROM `exchanges` e WHERE e.`id` = `exchange_id`), `exchange_id`),
	`pair` = coalesce((SELECT b.`symbol` || '/' || q.`symbol` FROM `market_rows` m
		JOIN `assets` b ON b.`id` = m.`base_asset_id` JOIN `assets` q ON q.`id` = m.`quote_asset_id`
		WHERE m.`id` = `contracts`.`market_id`), `market_id`);
