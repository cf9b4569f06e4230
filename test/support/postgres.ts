import { afterAll, beforeAll } from "vitest";
import { PostgresServer, type TestPostgres } from "./postgres-server.ts";

/** Starts a server for the tests of a file, each of which creates its own database. */
export function usePostgres(settings: Readonly<Record<string, string>> = {}): TestPostgres {
  const server = new PostgresServer(settings);
  beforeAll(() => server.start());
  afterAll(() => server.remove());
  return server;
}
