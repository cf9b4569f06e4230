import { constants, setPriority } from "node:os";
import { exitCode } from "../model/failure.ts";
import { reportAndExit } from "../runtime/child-process.ts";
import { systemClock } from "../runtime/clock.ts";
import { exportWarehouse } from "./export-warehouse.ts";
import type { ExportRequest } from "./run-export.ts";

// A separate process: it takes no time from the threads that store ticks, and can be killed at any time.
setPriority(constants.priority.PRIORITY_LOW);
process.on("disconnect", () => process.exit(exitCode.unexpected));

await reportAndExit(() => {
  const request = JSON.parse(process.argv[2] ?? "") as ExportRequest;
  return exportWarehouse({ ...request, env: process.env, clock: systemClock });
}, "export_bug");
