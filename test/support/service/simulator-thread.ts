import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../../src/runtime/clock.ts";
import { startSimulator } from "../../simulator/simulator.ts";

/**
 * Runs the simulator in its own thread at a fixed time, so that its memory and CPU time are not the client's.
 */
const simulator = await startSimulator({
  clock: { ...systemClock, now: () => workerData.now as number },
  size: { assets: 6, markets: 6, exchanges: 2 },
  quirks: { lastPage: "own-id", compression: "none" },
});
const { baseUrl, wsUrl, clientId, clientSecret, universe } = simulator;
const indexId = universe.assets.find(({ firstDay }) => firstDay < 18_000)?.id;
parentPort?.postMessage({ baseUrl, wsUrl, clientId, clientSecret, indexId });
parentPort?.on("message", () =>
  parentPort?.postMessage({ requestCount: simulator.requests.count("/v3/index-ticker") }),
);
