import { join } from "node:path";
import { exportWarehouse } from "../../../src/export/export-warehouse.ts";
import { systemClock } from "../../../src/runtime/clock.ts";

// Exports the folder's warehouse and dies, as by kill -9, when it has reached a step for the nth time.
const [folder = "", to = "", step, nth] = process.argv.slice(2);
let left = Number(nth);
await exportWarehouse({
  warehouse: join(folder, "mds.sqlite"),
  to,
  env: process.env,
  program: "0.0.0",
  clock: systemClock,
  onStep(reached) {
    if (reached === step && --left === 0) process.kill(process.pid, "SIGKILL");
  },
});
