DROP TABLE `live_spans`;
--> statement-breakpoint
CREATE TABLE `live_spans` (
	`stream` text NOT NULL,
	`index_type` text NOT NULL,
	`index_id` text NOT NULL,
	`from_ts` integer NOT NULL,
	`to_ts` integer NOT NULL,
	PRIMARY KEY(`stream`, `index_type`, `index_id`)
) STRICT, WITHOUT ROWID;
