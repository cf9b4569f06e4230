import { afterAll, beforeAll } from "vitest";
import { PostgresServer, type PostgresSettings, SCHEMA_TEMPLATE, TestPostgres } from "./postgres-server.ts";
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

/** A server for the tests of one file, which may stop it and change its settings. */
export function useOwnPostgres(settings: PostgresSettings = {}, binaries?: string): PostgresServer {
  const server = new PostgresServer(settings, binaries);
  beforeAll(() => server.start());
  afterAll(() => server.remove());
  return server;
}
