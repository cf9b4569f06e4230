import pg from "pg";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import {
  PASSWORD,
  PostgresServer,
  type PostgresSettings,
  SCHEMA_TEMPLATE,
  SUPERUSER,
  TestPostgres,
} from "./postgres-server.ts";
import { askForPostgres } from "./run-postgres.ts";

/** The server of the run. Each test creates its own databases in it, which have an empty schema `mds`. */
export function usePostgres(): TestPostgres {
  const server = new TestPostgres();
  server.template = SCHEMA_TEMPLATE;
  beforeAll(async () => {
    server.port = await askForPostgres();
  });
  return server;
}

/** A connection that a test keeps open. */
export async function openClient(
  { port }: TestPostgres,
  database: string,
  user = SUPERUSER,
): Promise<pg.Client> {
  const client = new pg.Client({ host: "127.0.0.1", port, database, user, password: PASSWORD });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** The same for a user who may read schema `mds`. */
export async function openAnalyst(server: TestPostgres, database: string) {
  const user = await server.createUser();
  const grants = `GRANT USAGE ON SCHEMA mds TO ${user}; GRANT SELECT ON ALL TABLES IN SCHEMA mds TO ${user}`;
  await server.query(database, grants);
  return { user, client: await openClient(server, database, user) };
}

/** A server for the tests of one file, which may stop it and change its settings. */
export function useOwnPostgres(settings: PostgresSettings = {}, binaries?: string): PostgresServer {
  const server = new PostgresServer(settings, binaries);
  beforeAll(() => server.start());
  afterAll(() => server.remove());
  return server;
}
