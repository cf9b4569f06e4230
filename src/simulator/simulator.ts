import { randomUUID } from "node:crypto";
import { ApiServer } from "../api-server/api-server.ts";
import { defaultChoices } from "../api-server/choices.ts";
import type { Access } from "../api-server/tokens.ts";
import { serviceScopes } from "../model/streams.ts";
import { systemClock } from "../runtime/clock.ts";
import { silentLog } from "../runtime/log.ts";
import type { UniverseSize } from "./market/universe.ts";
import { createMarketSource } from "./market-source.ts";
import { createWorld } from "./world.ts";

interface SimulatorOptions {
  /** `demo`: a dozen assets; `real`: as many as the real service. */
  readonly size: UniverseSize;
  readonly refreshSeconds: number;
  /** 0: any free port. */
  readonly port: number;
}

/** The only client of the service. */
const client = { clientId: "demo", clientSecret: "demo-secret" };
const TOKEN_SECONDS = 86_400;
/** All ticks of a refresh of the real size are sent at once. */
export const MAX_UNREAD_BYTES = 128 * 2 ** 20;

export async function startSimulator({ size, refreshSeconds, port }: SimulatorOptions) {
  const access: Access = {
    isOpen: false,
    isSecretOf: (id, secret) => id === client.clientId && secret === client.clientSecret,
    grantOf: () => ({ scopes: serviceScopes, seconds: TOKEN_SECONDS }),
    createToken: () => randomUUID(),
  };
  const world = createWorld({ seed: 1, size, tickMs: refreshSeconds * 1000 });
  // On one machine, compressing costs more than it saves.
  const choices = { ...defaultChoices, compression: "none" } as const;
  const server = new ApiServer({
    ...{ access, port, host: "127.0.0.1", name: "the simulator", portSetting: "--port" },
    clock: systemClock,
    source: createMarketSource(world, systemClock, choices),
    log: { ...silentLog, error: ({ error }) => process.stderr.write(`simulator: ${error}\n`) },
    maxUnreadBytes: MAX_UNREAD_BYTES,
  });
  await server.listen();
  return { ...client, baseUrl: server.baseUrl, wsUrl: server.wsUrl, stop: () => server.stop() };
}
