import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { exitCode, Failure, type FailureDetails } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import { stopped } from "./export-failure.ts";
import type { ExportOptions, ExportResult } from "./export-warehouse.ts";

export type ExportRequest = Pick<ExportOptions, "warehouse" | "to" | "since" | "program">;

interface SentFailure extends Omit<FailureDetails, "cause"> {
  readonly message: string;
}

/** What the process says once, before it ends. */
export type ExportReport = { readonly result: ExportResult } | { readonly failure: SentFailure };

/**
 * Exports in a process of low priority, for a daemon whose own threads must not wait. It ends at once when `stopping`
 * aborts: killed anywhere, it leaves the previous export whole.
 */
export async function exportInProcess(
  request: ExportRequest,
  { clock, stopping }: { readonly clock: Clock; readonly stopping: AbortSignal },
): Promise<ExportResult> {
  const release = clock.hold();
  // The same file under its two names: run in place as TypeScript, or built.
  const name = import.meta.url.endsWith(".ts") ? "./export-process.ts" : "./export-process.js";
  const child = fork(fileURLToPath(new URL(name, import.meta.url)), [JSON.stringify(request)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  let report: ExportReport | undefined;
  child.once("message", (message) => {
    report = message as ExportReport;
  });
  const stop = () => void child.kill("SIGKILL");
  stopping.addEventListener("abort", stop, { once: true });
  if (stopping.aborted) stop();
  try {
    await once(child, "close");
  } finally {
    stopping.removeEventListener("abort", stop);
    release();
  }
  if (report === undefined) throw stopped(request.to);
  if ("result" in report) return report.result;
  const { message, ...details } = report.failure;
  throw new Failure(message, details);
}

/** A failure in a form that crosses processes. */
export function reportOf(error: unknown): SentFailure {
  if (error instanceof Failure) {
    const { message, family, code, remedy, exit } = error;
    return { message, family, code, exit, ...(remedy === undefined ? {} : { remedy }) };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { message, family: "bug", code: "export_bug", exit: exitCode.unexpected };
}
