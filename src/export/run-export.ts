import { resolveSiblingModule, runChildProcess } from "../runtime/child-process.ts";
import type { Clock } from "../runtime/clock.ts";
import { exportStopped } from "./errors.ts";
import type { ExportOptions, ExportResult } from "./export-warehouse.ts";

export type ExportRequest = Pick<ExportOptions, "warehouse" | "to" | "since" | "program">;

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
    const { result } = await runChildProcess<ExportResult>(
      resolveSiblingModule("./export-process", import.meta.url),
      [JSON.stringify(request)],
      { signal: stopping },
    );
    if (result === undefined) throw exportStopped(request.to);
    return result;
  } finally {
    release();
  }
}
