-- What was known before the last ticks left the file cannot be told: the past begins after that.
DELETE FROM `commits` WHERE `seq` > 0 AND `seq` < (SELECT max(`since`) FROM
  (SELECT `since` FROM `settled_ranges` WHERE `proof` = 'moved' UNION ALL SELECT `since` FROM `past_settled_ranges` WHERE `proof` = 'moved'));--> statement-breakpoint
UPDATE `commits` SET `at` = (SELECT `at` FROM `commits` WHERE `seq` > 0 ORDER BY `seq` LIMIT 1) WHERE `seq` = 0
  AND (EXISTS (SELECT 1 FROM `settled_ranges` WHERE `proof` = 'moved' AND `since` IS NOT NULL)
    OR EXISTS (SELECT 1 FROM `past_settled_ranges` WHERE `proof` = 'moved' AND `since` IS NOT NULL));--> statement-breakpoint
UPDATE `past_settled_ranges` SET `proof` = 'lost', `reason` = 'moved' WHERE `proof` = 'moved';--> statement-breakpoint
UPDATE `settled_ranges` SET `proof` = 'lost', `reason` = 'moved' WHERE `proof` = 'moved';--> statement-breakpoint
-- Ranges that touch and had different places are one now.
UPDATE `settled_ranges` AS g SET `to_ts` = (SELECT min(e.`to_ts`) FROM `settled_ranges` e
    WHERE e.`stream` = g.`stream` AND e.`series` = g.`series` AND e.`reason` = 'moved' AND e.`from_ts` >= g.`from_ts`
    AND NOT EXISTS (SELECT 1 FROM `settled_ranges` n WHERE n.`stream` = g.`stream` AND n.`series` = g.`series`
      AND n.`reason` = 'moved' AND n.`from_ts` = e.`to_ts`))
  WHERE `reason` = 'moved' AND EXISTS (SELECT 1 FROM `settled_ranges` n WHERE n.`stream` = g.`stream` AND n.`series` = g.`series`
    AND n.`reason` = 'moved' AND n.`from_ts` = g.`to_ts`);--> statement-breakpoint
DELETE FROM `settled_ranges` AS g WHERE `reason` = 'moved' AND EXISTS (SELECT 1 FROM `settled_ranges` p
  WHERE p.`stream` = g.`stream` AND p.`series` = g.`series` AND p.`reason` = 'moved' AND p.`from_ts` < g.`from_ts` AND p.`to_ts` >= g.`to_ts`);
