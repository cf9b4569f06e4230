import { join } from "node:path";
import { exportWarehouse } from "../../../src/export/export-warehouse.ts";
import { systemClock } from "../../../src/runtime/clock.ts";

// Exports the folder's warehouse and dies, as by kill -9, when it has stored its third file.
const [folder = "", to = ""] = process.argv.slice(2);
let left = 3;
await exportWarehouse({
  warehouse: join(folder, "mds.sqlite"),
  to,
  env: process.env,
  program: "0.0.0",
  clock: systemClock,
  onStep(step) {
    if (step === "file stored" && --left === 0) process.kill(process.pid, "SIGKILL");
  },
});
