import { expect, it } from "vitest";
import { SCHEMA_VERSION } from "../../../src/share/schema/migrate.ts";
import { usePostgres } from "../../support/postgres.ts";
import { failureOf, shareInto } from "../../support/share/share-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const server = usePostgres();

/** A database of an older version, whose view `status_changes` had these columns. One user may read it, everyone one column. */
async function openOlder(columns: string) {
  const database = await server.createDatabase();
  const [analyst, anyone] = [await server.createUser(), await server.createUser()];
  await server.query(
    database,
    `DROP VIEW mds.status_changes; CREATE VIEW mds.status_changes AS SELECT ${columns} FROM mds.status_change_rows;
    GRANT USAGE ON SCHEMA mds TO PUBLIC; GRANT SELECT ON mds.status_changes TO ${analyst} WITH GRANT OPTION;
    GRANT SELECT (change) ON mds.status_changes TO PUBLIC;
    UPDATE mds.schema_version SET digest = 'of an older program', version = ${SCHEMA_VERSION - 1}`,
  );
  const readRights = () =>
    server.query(
      database,
      `SELECT has_table_privilege('${analyst}', 'mds.status_changes', 'SELECT WITH GRANT OPTION') AS analyst,
        has_column_privilege('${anyone}', 'mds.status_changes', 'change', 'SELECT') AS column,
        has_column_privilege('${anyone}', 'mds.status_changes', 'entity', 'SELECT') AS other`,
    );
  return { database, readRights };
}

const readColumns = async (database: string) =>
  (
    await server.query<{ name: string }>(
      database,
      "SELECT attname AS name FROM pg_attribute WHERE attrelid = 'mds.status_changes'::regclass AND attnum > 0 ORDER BY attnum",
    )
  ).map(({ name }) => name);

const columnsNow = ["change", "entity", "id", "field", "old", "new", "seen_at"];
const rights = [{ analyst: true, column: true, other: false }];

it("keeps grants and a team's view when an upgrade appends columns to a view", async () => {
  const { database, readRights } = await openOlder("change, entity, id");
  await server.query(database, "CREATE VIEW mine AS SELECT entity FROM mds.status_changes");
  await shareInto(server, database, openTestWarehouse());
  expect(await readColumns(database)).toEqual(columnsNow);
  expect(await readRights()).toEqual(rights);
  expect(await server.query(database, "SELECT * FROM mine")).toEqual([]);
});

it("keeps grants when an upgrade changes a column of a view, and names the views that would break", async () => {
  const { database, readRights } = await openOlder("change::text AS change, entity");
  await server.query(database, "CREATE VIEW mine AS SELECT entity FROM mds.status_changes");
  expect(await failureOf(shareInto(server, database, openTestWarehouse()))).toMatchObject({
    code: "share_dependents",
    exit: 2,
    message: expect.stringContaining("mine"),
    remedy: expect.stringContaining("drop public.mine"),
  });
  expect(await readColumns(database)).toEqual(["change", "entity"]);
  await server.query(database, "DROP VIEW mine");
  await shareInto(server, database, openTestWarehouse());
  expect(await readColumns(database)).toEqual(columnsNow);
  expect(await readRights()).toEqual(rights);
});
