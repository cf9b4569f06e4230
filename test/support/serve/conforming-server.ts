import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import { decodePage } from "../../../src/ingest/decode/decode-page.ts";
import { serviceScopes } from "../../../src/model/streams.ts";
import { hashSecret } from "../../../src/serve/client-access.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import type { Fault } from "../../simulator/fault.ts";
import type { Simulator, SimulatorOptions } from "../../simulator/simulator.ts";
import { ManualClock } from "../manual-clock.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { writeRecords, writeTicks } from "../warehouse/write-records.ts";
import { serveWarehouse, startFilledWarehouse } from "./filled-server.ts";

/** Each comparison with a hash of the usual cost takes 50 ms of CPU. */
const CHEAP = { N: 16, r: 1, p: 1 };

const START = "2026-03-01T12:00:10Z";

let folder = "";
let filled: Awaited<ReturnType<typeof startFilledWarehouse>>;

/** Fills the warehouse for all tests of a file, which only read. A hook would have to do it within its time limit. */
export async function prepareConformingServer(): Promise<void> {
  folder = temporaryFolder(afterAll);
  filled = await startFilledWarehouse(folder, START);
  await filled.simulator.stop();
}

const REFRESH_MS = 30_000;

/** Commits what the simulator would send at each refresh, as a daemon does. Returns a function that ends it. */
function writeEachRefresh(path: string, { oracle, universe }: Simulator, clock: ManualClock): () => void {
  const warehouse = openWriter(path, { clock });
  const { assets, markets, liquidIndexes } = universe;
  const byType = { GWA: assets, MWA: markets, LX: liquidIndexes };
  const indices = (["GWA", "MWA", "LX"] as const).flatMap((type) =>
    byType[type].map(({ id }) => ({ type, id })),
  );
  let cancel: () => void;
  const wait = () => {
    cancel = clock.after(REFRESH_MS - (clock.now() % REFRESH_MS), () => {
      const now = clock.now();
      const ticks = indices.flatMap(({ type, id }) => oracle.indexTicks(type, id, now, now + 1, now));
      const decode = <S extends "index_ticks" | "exchange_ticks">(stream: S, content: readonly object[]) =>
        decodePage(stream, JSON.stringify({ content })).records;
      warehouse.transaction((transaction) => {
        writeTicks(transaction, decode("index_ticks", ticks), "live");
        const tickers = decode("exchange_ticks", oracle.exchangeTicks(now));
        writeRecords(transaction, "exchange_ticks", tickers, "live");
      });
      wait();
    });
  };
  wait();
  return () => {
    cancel();
    warehouse.close();
  };
}

/**
 * A server of the filled warehouse in the shape of the simulator that it was filled from. `isLive`: a writer goes on with a
 * copy of it.
 */
export async function startConformingServer(
  options: SimulatorOptions,
  isLive = false,
): Promise<{ simulator: Simulator; clock: ManualClock }> {
  const { simulator, path: filledPath } = filled;
  const path = isLive ? join(folder, `live-${Math.random()}.sqlite`) : filledPath;
  if (isLive) copyFileSync(filledPath, path);
  const { clientId = "demo", clientSecret = "demo-secret", scopes = serviceScopes } = options;
  const clock = new ManualClock(START);
  const secretHashFile = join(folder, `hash-${Math.random()}`);
  writeFileSync(secretHashFile, await hashSecret(clientSecret, CHEAP));
  const client = { id: clientId, secretHashFile, scopes };
  const stopWriter = isLive ? writeEachRefresh(path, simulator, clock) : () => {};
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
      writeFileSync(secretHashFile, await hashSecret(rotated, CHEAP));
    },
    /** Of the faults, only missing scopes can be had without the simulator. */
    setFaults(...faults: readonly Fault[]) {
      client.scopes = scopes.filter((scope) => faults.every(({ name }) => name !== `scopeWithout ${scope}`));
    },
    async stop() {
      await server.close();
      stopWriter();
    },
  };
  const descriptors = Object.getOwnPropertyDescriptors(overrides);
  return {
    clock,
    simulator: Object.create(simulator, { ...descriptors, clientSecret: { get: () => secret } }) as Simulator,
  };
}
