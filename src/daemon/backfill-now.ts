import { Failure } from "../model/failure.ts";
import { historyStreams } from "../model/streams.ts";
import { createSilenceTimeout, type SyncContext } from "../sync/context/context.ts";
import { computeBackfillProgress, countsOf } from "../sync/context/run-stats.ts";
import { type BackfillFilter, type BackfillReport, backfill } from "../sync/history/backfill.ts";
import type { SyncSupervisor } from "../sync/supervisor.ts";
import type { DaemonTelemetry } from "./daemon-telemetry.ts";

const PROGRESS_INTERVAL_MS = 2_000;

/** The work of the command `backfill`, done by the daemon beside its own. Both may fetch the same page: each commit is idempotent. */
export async function backfillNow(
  context: SyncContext,
  telemetry: Pick<DaemonTelemetry, "observeRun">,
  supervisor: Pick<SyncSupervisor, "checkNow">,
  filter: BackfillFilter,
  signal: AbortSignal,
  onProgress: (rows: number, percent: number) => void,
): Promise<BackfillReport> {
  const { clock, client, ingest, log } = context;
  const silence = createSilenceTimeout(
    clock,
    () => ingest.blockingFailure,
    () => client.health().lastFailure,
  );
  const { stats, end } = telemetry.observeRun((event) => silence.onEvent(event));
  const stopping = new AbortController();
  const startedAt = clock.monotonic();
  const report = async () => {
    while (!stopping.signal.aborted) {
      await clock.sleep(PROGRESS_INTERVAL_MS, stopping.signal).catch(() => {});
      const rows = historyStreams.reduce((sum, stream) => sum + countsOf(stats, stream).rows, 0);
      const percent = computeBackfillProgress(stats, clock.monotonic() - startedAt)?.percent ?? 0;
      if (!stopping.signal.aborted) onProgress(rows, percent);
    }
  };
  const reporting = report();
  log.info({ streams: filter.streams, series: filter.series }, "backfill requested");
  try {
    return await backfill(
      { ...context, stats, signal: AbortSignal.any([context.signal, signal, silence.signal]) },
      filter,
      true,
    );
  } catch (error) {
    // To the caller, exit code 0 means that everything selected is synced.
    throw context.signal.aborted ? daemonStoppedFailure(error) : error;
  } finally {
    stopping.abort();
    silence.cancel();
    end();
    await reporting;
    // The head poller reads again how far the heads are covered.
    supervisor.checkNow();
  }
}

function daemonStoppedFailure(cause: unknown): Failure {
  return new Failure("the daemon stopped before the work was done", {
    family: "retry",
    code: "stopped",
    remedy: "run it again: it resumes where it stopped",
    cause,
  });
}
