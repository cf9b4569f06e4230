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
	`aside` text,
	PRIMARY KEY(`series`, `ts` DESC)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `stale_bars` ON `kept_bars` (`ts`) WHERE n_ticks IS NULL;
--> statement-breakpoint
CREATE TRIGGER `bar_of_deleted_tick` AFTER DELETE ON `index_tick_rows` BEGIN
	UPDATE `kept_bars` SET `n_ticks` = NULL
		WHERE `series` = OLD.`series` AND `ts` = OLD.`ts` - (OLD.`ts` % 3600000000 + 3600000000) % 3600000000 AND `n_ticks` IS NOT NULL;
END;
--> statement-breakpoint
CREATE TRIGGER `bar_of_updated_tick` AFTER UPDATE OF `series`, `ts`, `price`, `volume`, `aside` ON `index_tick_rows` BEGIN
	UPDATE `kept_bars` SET `n_ticks` = NULL
		WHERE `series` = OLD.`series` AND `ts` = OLD.`ts` - (OLD.`ts` % 3600000000 + 3600000000) % 3600000000 AND `n_ticks` IS NOT NULL;
	INSERT INTO `kept_bars` (`series`, `ts`) VALUES (NEW.`series`, NEW.`ts` - (NEW.`ts` % 3600000000 + 3600000000) % 3600000000)
		ON CONFLICT DO UPDATE SET `n_ticks` = NULL WHERE `n_ticks` IS NOT NULL;
END;
--> statement-breakpoint
INSERT INTO `kept_bars` (`series`, `ts`)
WITH RECURSIVE `days` (`series`, `day`) AS (
	SELECT s.`series`, (SELECT t.`ts` - (t.`ts` % 86400000000 + 86400000000) % 86400000000
		FROM `index_tick_rows` t WHERE t.`series` = s.`series` ORDER BY t.`ts` LIMIT 1)
	FROM `series` s
	UNION ALL
	SELECT d.`series`, (SELECT t.`ts` - (t.`ts` % 86400000000 + 86400000000) % 86400000000
		FROM `index_tick_rows` t WHERE t.`series` = d.`series` AND t.`ts` >= d.`day` + 86400000000 ORDER BY t.`ts` LIMIT 1)
	FROM `days` d WHERE d.`day` IS NOT NULL
),
`hours` (`shift`) AS (SELECT 0 UNION ALL SELECT `shift` + 3600000000 FROM `hours` WHERE `shift` < 82800000000)
SELECT `series`, `day` + `shift` FROM `days` CROSS JOIN `hours` WHERE `day` IS NOT NULL ORDER BY 1, 2 DESC;