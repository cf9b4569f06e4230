import { createServer } from "node:http";
import { listen } from "./listen.ts";

/** Set for all workers of one run: where they ask for the PostgreSQL that the test files share. */
const ADDRESS_VARIABLE = "MDS_TEST_POSTGRES";
/** As many as all files that run at once may open. */
const MAX_CONNECTIONS = "200";

/** Starts PostgreSQL when the first test file asks for its port. Returns what to do after the last. */
export async function offerPostgres(): Promise<() => Promise<void>> {
  let started: ReturnType<typeof startPostgres> | undefined;
  const offer = createServer((_request, response) => {
    started ??= startPostgres();
    started.then(
      ({ port }) => response.end(String(port)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  process.env[ADDRESS_VARIABLE] = `http://127.0.0.1:${await listen(offer)}`;
  return async () => {
    offer.close();
    offer.closeAllConnections();
    const server = await started?.catch(() => undefined);
    await server?.remove();
  };
}

/** The port of the PostgreSQL of this run. */
export async function askForPostgres(): Promise<number> {
  const response = await fetch(process.env[ADDRESS_VARIABLE] ?? "");
  const text = await response.text();
  if (!response.ok) throw new Error(`PostgreSQL did not start: ${text}`);
  return Number(text);
}

async function startPostgres() {
  const { PostgresServer } = await import("./postgres-server.ts");
  const { createSchemaTemplate } = await import("./share/schema-template.ts");
  const server = new PostgresServer({ max_connections: MAX_CONNECTIONS });
  await server.start();
  await createSchemaTemplate(server);
  return server;
}
