import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashSecret } from "../../../src/serve/client-secrets.ts";
import { serveScopes } from "../../../src/serve/rest/router.ts";
import type { Simulator, SimulatorOptions } from "../../../src/simulator/simulator.ts";
import { ManualClock } from "../manual-clock.ts";
import { serveWarehouse, startFilledWarehouse } from "./filled-server.ts";

/** A hash takes 16 MiB and 50 ms. */
const hashes = new Map<string, Promise<string>>();

function hashOnce(secret: string): Promise<string> {
  const hash = hashes.get(secret) ?? hashSecret(secret);
  hashes.set(secret, hash);
  return hash;
}

const START = "2026-03-01T12:00:10Z";

/** Filled once for all tests of a file: they only read. */
let filled: ReturnType<typeof fill> | undefined;

async function fill() {
  const folder = mkdtempSync(join(tmpdir(), "mds-serve-"));
  const warehouse = await startFilledWarehouse(folder, START);
  await warehouse.simulator.stop();
  return { ...warehouse, folder };
}

/** A server of the filled warehouse in the shape of the simulator that it was filled from. */
export async function startConformingServer(
  options: SimulatorOptions,
): Promise<{ simulator: Simulator; clock: ManualClock }> {
  filled ??= fill();
  const { simulator, path, folder } = await filled;
  const { clientId = "demo", clientSecret = "demo-secret", scopes = serveScopes } = options;
  const clock = new ManualClock(START);
  const secretHashFile = join(folder, `hash-${Math.random()}`);
  writeFileSync(secretHashFile, await hashOnce(clientSecret));
  const client = { id: clientId, secretHashFile, scopes };
  const server = await serveWarehouse(path, clock, { clients: [client] });
  let secret = clientSecret;
  const overrides = {
    baseUrl: server.baseUrl,
    wsUrl: server.wsUrl,
    clientId,
    grantScopes(granted: readonly string[]) {
      client.scopes = granted;
    },
    async rotateSecret(rotated: string) {
      secret = rotated;
      writeFileSync(secretHashFile, await hashOnce(rotated));
    },
    /** Of the faults, only missing scopes can be had without the simulator. */
    setFaults(script: string) {
      const [, missing] = /scope-without (\S+)/.exec(script) ?? [];
      client.scopes = scopes.filter((scope) => scope !== missing);
    },
    stop: () => server.close(),
  };
  const descriptors = Object.getOwnPropertyDescriptors(overrides);
  return {
    clock,
    simulator: Object.create(simulator, {
      ...descriptors,
      clientSecret: { get: () => secret },
    }) as Simulator,
  };
}

/** Call it after the last test. */
export async function removeConformingServer(): Promise<void> {
  if (filled) rmSync((await filled).folder, { recursive: true, force: true });
}
