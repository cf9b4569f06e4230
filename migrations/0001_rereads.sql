CREATE TABLE `rereads` (
	`stream` text NOT NULL,
	`series` integer NOT NULL,
	`day` text NOT NULL,
	PRIMARY KEY(`stream`, `series`)
) STRICT, WITHOUT ROWID;
