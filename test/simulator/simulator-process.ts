import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { listen } from "../support/listen.ts";
import { createFault } from "./faults.ts";
import { type Simulator, startSimulator } from "./simulator.ts";

/*
 * A simulator in a process of its own. Prints its settings as `mds-sync simulate` does, after the address of its controls:
 *
 *   POST /faults     replaces all faults; the body is a list of FaultCall
 *   GET  /requests   the request log
 */
const { values } = parseArgs({ options: { "refresh-seconds": { type: "string", default: "30" } } });
const simulator = await startSimulator({ refreshSeconds: Number(values["refresh-seconds"]) });
const controls: Record<string, (simulator: Simulator, body: string) => unknown> = {
  "/faults": ({ setFaults }, body) => setFaults(...JSON.parse(body).map(createFault)),
  "/requests": ({ requests }) => requests.list,
};
const server = createServer(async ({ url = "" }, response) => {
  const body = await text(response.req);
  response.end(JSON.stringify(controls[url]?.(simulator, body) ?? {}));
});
const port = await listen(server);
const settings = {
  SIMULATOR_CONTROLS: `http://127.0.0.1:${port}`,
  MDS_BASE_URL: simulator.baseUrl,
  MDS_WS_URL: simulator.wsUrl,
  MDS_CLIENT_ID: simulator.clientId,
  MDS_CLIENT_SECRET: simulator.clientSecret,
};
for (const [name, value] of Object.entries(settings)) process.stdout.write(`${name}=${value}\n`);
process.once("SIGTERM", async () => {
  server.close().closeAllConnections();
  await simulator.stop();
});
