import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../../src/runtime/clock.ts";
import { startSimulator } from "../../../src/simulator/simulator.ts";

/** The simulator in a thread of its own, at one fixed moment: its memory and its work are not the client's. */
const simulator = await startSimulator({
  clock: { ...systemClock, now: () => workerData.now as number },
  size: { assets: 6, markets: 6, exchanges: 2 },
  quirks: { lastPage: "own-id" },
});
const { baseUrl, wsUrl, clientId, clientSecret, universe } = simulator;
const indexId = universe.assets.find(({ firstDay }) => firstDay < 18_000)?.id;
parentPort?.postMessage({ baseUrl, wsUrl, clientId, clientSecret, indexId });
parentPort?.on("message", () =>
  parentPort?.postMessage({ asked: simulator.requests.count("/v3/index-ticker") }),
);
