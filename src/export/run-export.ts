import { deserialiseFailure, type SerialisedFailure } from "../model/failure.ts";
import { resolveSiblingModule, runChildProcess } from "../runtime/child-process.ts";
import type { Clock } from "../runtime/clock.ts";
import { exportStopped } from "./errors.ts";
import type { ExportOptions, ExportResult } from "./export-warehouse.ts";

export type ExportRequest = Pick<ExportOptions, "warehouse" | "to" | "since" | "program">;

/** The message that the process sends before it ends. */
export type ExportReport = { readonly result: ExportResult } | { readonly failure: SerialisedFailure };

/**
 * Exports in a process of low priority, so that the threads of the daemon do not wait. The process is killed when
 * `stopping` aborts; the previous export stays intact.
 */
export async function exportInProcess(
  request: ExportRequest,
  { clock, stopping }: { readonly clock: Clock; readonly stopping: AbortSignal },
): Promise<ExportResult> {
  const release = clock.beginWork();
  try {
    const { message: report } = await runChildProcess<ExportReport>(
      resolveSiblingModule("./export-process", import.meta.url),
      [JSON.stringify(request)],
      { signal: stopping },
    );
    if (report === undefined) throw exportStopped(request.to);
    if ("failure" in report) throw deserialiseFailure(report.failure);
    return report.result;
  } finally {
    release();
  }
}
