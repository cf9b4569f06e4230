CREATE TABLE `snapshot_states` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`state` text NOT NULL,
	PRIMARY KEY(`stream`, `series`)
) STRICT, WITHOUT ROWID;
