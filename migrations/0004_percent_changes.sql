-- ALTER TABLE … ADD keeps STRICT and WITHOUT ROWID. Rows stored before keep these values in `extra`: moving them would
-- rewrite the whole table, for minutes, while the start waits.
ALTER TABLE `market_cap_rows` ADD `price_change_24h` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `price_change_7d` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `price_change_30d` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `volume_change_24h` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `volume_change_7d` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `volume_change_30d` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `total_market_cap_change_24h` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `total_market_cap_change_7d` real;
--> statement-breakpoint
ALTER TABLE `market_cap_rows` ADD `total_market_cap_change_30d` real;
