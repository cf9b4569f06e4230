import { describe, expect, it } from "vitest";
import { checkSharedWarehouse } from "../../../src/cli/commands/doctor/shared-checks.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { sharedViews } from "../../../src/share/schema/views.ts";
import { skipWithout } from "../../support/has-tool.ts";
import { openAnalyst, useOwnPostgres } from "../../support/postgres.ts";
import { DEBIAN_POSTGRES, PASSWORD } from "../../support/postgres-server.ts";
import { addHours, shareInto } from "../../support/share/share-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const hasDebianPostgres =
  DEBIAN_POSTGRES !== undefined ||
  skipWithout("Debian's postgresql is not installed", "the checks of compiled queries");

describe.runIf(hasDebianPostgres)("a PostgreSQL that compiles queries", () => {
  const server = useOwnPostgres({}, DEBIAN_POSTGRES);

  /** A database of a new user, or one in which that user may only create a schema, with an hour of ticks. */
  async function openShared({ isOwner }: { readonly isOwner: boolean }) {
    const [user, database] = [await server.createUser(), await server.createDatabase()];
    await server.query(
      "postgres",
      isOwner
        ? `ALTER DATABASE ${database} OWNER TO ${user}`
        : `GRANT CREATE ON DATABASE ${database} TO ${user}`,
    );
    const warehouse = openTestWarehouse();
    addHours(warehouse, 0, 1);
    const url = server.url(database, user);
    await shareInto(server, database, warehouse, { url });
    const env = { MDS_SHARED_URL: url, MDS_SHARED_PASSWORD: PASSWORD };
    const findings = await checkSharedWarehouse(loadSettings({ env }), systemClock);
    return { database, advice: findings.flatMap(({ remedy }) => (/jit/.test(remedy ?? "") ? [remedy] : [])) };
  }

  /** The views of which an analyst's session compiles a query. */
  async function findCompiled(database: string): Promise<string[]> {
    const { client } = await openAnalyst(server, database);
    const compiled: string[] = [];
    for (const view of Object.keys(sharedViews)) {
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) SELECT * FROM mds.${view}`);
      if ("JIT" in rows[0]["QUERY PLAN"][0]) compiled.push(view);
    }
    return compiled;
  }

  it("compiles none of any reader where the daemon owns the database", async () => {
    const { database, advice } = await openShared({ isOwner: true });
    expect(await findCompiled(database)).toEqual([]);
    expect(advice).toEqual([]);
  });

  it("is told by doctor with the line for its owner elsewhere", async () => {
    const { database, advice } = await openShared({ isOwner: false });
    expect(await findCompiled(database)).toContain("bars_1m");
    expect(advice).toEqual([`let a superuser or the owner run ALTER DATABASE "${database}" SET jit = off`]);
    await server.query(database, `ALTER DATABASE ${database} SET jit = off`);
    expect(await findCompiled(database)).toEqual([]);
  });
});
