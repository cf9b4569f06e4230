import { receiveFailure, type SentFailure } from "../model/failure.ts";
import { ownFile, runHelper } from "../runtime/child-process.ts";
import type { Clock } from "../runtime/clock.ts";
import { exportStopped } from "./errors.ts";
import type { ExportOptions, ExportResult } from "./export-warehouse.ts";

export type ExportRequest = Pick<ExportOptions, "warehouse" | "to" | "since" | "program">;

/** What the process reports before it ends. */
export type ExportReport = { readonly result: ExportResult } | { readonly failure: SentFailure };

/**
 * Exports in a process of low priority, so that the threads of the daemon do not wait. The process is killed when
 * `stopping` aborts; the previous export stays whole.
 */
export async function exportInProcess(
  request: ExportRequest,
  { clock, stopping }: { readonly clock: Clock; readonly stopping: AbortSignal },
): Promise<ExportResult> {
  const release = clock.hold();
  try {
    const { report } = await runHelper<ExportReport>(
      ownFile("./export-process", import.meta.url),
      [JSON.stringify(request)],
      { stopping },
    );
    if (report === undefined) throw exportStopped(request.to);
    if ("failure" in report) throw receiveFailure(report.failure);
    return report.result;
  } finally {
    release();
  }
}
