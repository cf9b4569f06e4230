import { constants, setPriority } from "node:os";
import { exitCode, serialiseFailure } from "../model/failure.ts";
import { sendMessageAndExit } from "../runtime/child-process.ts";
import { systemClock } from "../runtime/clock.ts";
import { exportWarehouse } from "./export-warehouse.ts";
import type { ExportReport, ExportRequest } from "./run-export.ts";

// A separate process: it takes no time from the threads that store ticks, and can be killed at any time.
setPriority(constants.priority.PRIORITY_LOW);
process.on("disconnect", () => process.exit(exitCode.unexpected));

async function run(): Promise<ExportReport> {
  try {
    const request = JSON.parse(process.argv[2] ?? "") as ExportRequest;
    return { result: await exportWarehouse({ ...request, env: process.env, clock: systemClock }) };
  } catch (error) {
    return { failure: serialiseFailure(error, "export_bug") };
  }
}

sendMessageAndExit(await run());
