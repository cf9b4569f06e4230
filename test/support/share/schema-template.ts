import { systemClock } from "../../../src/runtime/clock.ts";
import { migrateShared } from "../../../src/share/schema/migrate.ts";
import { parseServerAddress } from "../../../src/share/server/server-address.ts";
import { SharedSession } from "../../../src/share/server/session.ts";
import { PASSWORD, SCHEMA_TEMPLATE, type TestPostgres } from "../postgres-server.ts";

/** Creates a database with an empty schema `mds`: copying it takes a tenth of the time that creating the schema takes. */
export async function createSchemaTemplate(server: TestPostgres): Promise<void> {
  await server.query("postgres", `CREATE DATABASE ${SCHEMA_TEMPLATE}`);
  const address = parseServerAddress(server.url(SCHEMA_TEMPLATE));
  const readPassword = () => PASSWORD;
  const session = await SharedSession.connect({ address, readPassword, holder: "tests", clock: systemClock });
  await migrateShared(session, systemClock);
  await session.close();
}
