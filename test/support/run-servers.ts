import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { timeLimit } from "./time-limit.ts";

/** Set for all workers of one run: where they ask for the servers that the test files share. */
const ADDRESS_VARIABLE = "MDS_TEST_SERVERS";
/** Debian's package: Chromium without windows, which takes a third of the CPU. Without it, the tests that need it print what they skipped. */
export const CHROMIUM_PATH = "/usr/bin/chromium-headless-shell";
/** As many as all files that run at once may open. */
const MAX_CONNECTIONS = "200";

interface RunServer {
  readonly address: string;
  close(): Promise<void>;
}

const starters = { postgres: startPostgres, chromium: startChromium };
type ServerKind = keyof typeof starters;

export const hasChromium = existsSync(CHROMIUM_PATH);

/** Starts each server when the first test file asks for it. Returns what to do after the last. */
export async function offerServers(): Promise<() => Promise<void>> {
  const started = new Map<string, Promise<RunServer>>();
  const offer = createServer((request, response) => {
    const kind = request.url?.slice(1) as ServerKind;
    const server = started.get(kind) ?? starters[kind]();
    started.set(kind, server);
    server.then(
      ({ address }) => response.end(address),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  }).listen(0, "127.0.0.1");
  await once(offer, "listening");
  process.env[ADDRESS_VARIABLE] = `http://127.0.0.1:${(offer.address() as AddressInfo).port}`;
  return async () => {
    offer.close();
    offer.closeAllConnections();
    const servers = await Promise.allSettled(started.values());
    for (const server of servers) if (server.status === "fulfilled") await server.value.close();
  };
}

/** The address of a server of this run. */
export async function askForServer(kind: ServerKind): Promise<string> {
  const response = await fetch(new URL(kind, process.env[ADDRESS_VARIABLE]));
  const text = await response.text();
  if (!response.ok) throw new Error(`${kind} did not start: ${text}`);
  return text;
}

async function startPostgres(): Promise<RunServer> {
  const { PostgresServer } = await import("./postgres-server.ts");
  const { createSchemaTemplate } = await import("./share/schema-template.ts");
  const server = new PostgresServer({ max_connections: MAX_CONNECTIONS });
  await server.start();
  await createSchemaTemplate(server);
  return { address: String(server.port), close: () => server.remove() };
}

async function startChromium(): Promise<RunServer> {
  const { chromium } = await import("playwright-core");
  // It ends with the pipe to this process, also if that is killed: it needs no handlers of signals.
  const server = await chromium.launchServer({
    executablePath: CHROMIUM_PATH,
    timeout: timeLimit(60_000),
    args: ["--no-sandbox", "--disable-gpu"],
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  return { address: server.wsEndpoint(), close: () => server.close() };
}
