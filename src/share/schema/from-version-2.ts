import { renamesOf } from "../../warehouse/squashed-migrations.ts";
import { isInMonth, partitionedTables } from "./tables.ts";

const MONTH = "to_char(timestamp '1970-01-01' + ts * interval '1 microsecond', '_YYYY_MM')";

/**
 * Version 2 had other names of tables and columns, and a default partition. What is in it belongs to months that someone has
 * detached (the rows came again), or to no month.
 */
export const fromVersion2 = {
  before: `DO $$ DECLARE t text; BEGIN
    IF to_regclass('mds.wanted_ranges') IS NOT NULL THEN
      ${renamesOf("IF EXISTS mds.").join(";\n      ")};
    END IF;
    FOREACH t IN ARRAY ARRAY[${partitionedTables().map(({ table }) => `'${table}'`)}] LOOP
      IF to_regclass('mds.' || t || '_other') IS NOT NULL THEN
        EXECUTE format('ALTER TABLE mds.%I DETACH PARTITION mds.%I', t, t || '_other');
      END IF;
    END LOOP; END $$`,
  after: `DO $$ DECLARE t text; k text; m text; other text; BEGIN
    FOR t, k IN VALUES ${partitionedTables().map(({ table, key }) => `('${table}', '${key}')`)} LOOP
      other := t || '_other';
      CONTINUE WHEN to_regclass('mds.' || other) IS NULL;
      FOR m IN EXECUTE format('SELECT DISTINCT ${MONTH.replaceAll("'", "''")} FROM mds.%I WHERE ${isInMonth()}', other) LOOP
        IF to_regclass('mds.' || t || m) IS NULL THEN
          INSERT INTO mds.months VALUES (t || m, false);
        ELSE
          EXECUTE format('DELETE FROM mds.%1$I a USING mds.%2$I b WHERE a.%3$I = b.%3$I AND a.ts = b.ts', t || m, other, k);
          EXECUTE format('INSERT INTO mds.%I SELECT * FROM mds.%I WHERE ${MONTH.replaceAll("'", "''")} = %L', t || m, other, m);
        END IF;
      END LOOP;
      EXECUTE format('INSERT INTO mds.%I SELECT * FROM mds.%I WHERE NOT (${isInMonth()})', t, other);
      EXECUTE format('DROP TABLE mds.%I', other);
    END LOOP; END $$`,
};
