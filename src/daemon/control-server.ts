import { randomBytes, timingSafeEqual } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { PassThrough, type Readable } from "node:stream";
import { Failure, type SerialisedFailure, serialiseFailure } from "../model/failure.ts";
import { historyStreams } from "../model/streams.ts";
import { startHttpServer } from "../runtime/http-server.ts";
import { createSilenceTimeout, type SyncContext } from "../sync/context/context.ts";
import { computeBackfillProgress, countsOf } from "../sync/context/run-stats.ts";
import { type BackfillFilter, type BackfillReport, backfill } from "../sync/history/backfill.ts";
import type { SyncSupervisor } from "../sync/supervisor.ts";
import { resolvePath } from "../warehouse/sqlite/disk.ts";
import type { DaemonTelemetry } from "./daemon-telemetry.ts";

/** A line of the response. The last one has the report or the failure. */
export type BackfillLine =
  | { readonly progress: { readonly rows: number; readonly percent: number } }
  | { readonly report: BackfillReport }
  | { readonly failure: SerialisedFailure };

/** The content of the control file: only the daemon's user may read it. */
export interface ControlAddress {
  readonly port: number;
  readonly token: string;
}

export const CONTROL_PATH = "/backfill";
const MAX_REQUEST_BYTES = 1024 * 1024;
const PROGRESS_INTERVAL_MS = 2_000;

/** The file beside the warehouse from which other commands of the same user learn how to reach its daemon. */
export function controlFileOf(warehousePath: string): string {
  return `${resolvePath(warehousePath)}.control`;
}

interface ControlledDaemon {
  readonly context: SyncContext;
  readonly telemetry: Pick<DaemonTelemetry, "observeRun">;
  readonly supervisor: Pick<SyncSupervisor, "checkNow">;
}

/**
 * Lets `backfill --now` use the running daemon, on a loopback port of its own. The token is in a file that only the daemon's
 * user can read, so that neither another user nor a web page can send a request.
 */
export async function startControlServer(warehousePath: string, daemon: ControlledDaemon) {
  const token = randomBytes(32).toString("hex");
  const file = controlFileOf(warehousePath);
  const server = await startHttpServer({
    name: "the control port",
    portSetting: "port",
    host: "127.0.0.1",
    port: 0,
    // A backfill may wait for the service longer than any limit.
    streamTimeoutMs: 0,
    respond: async (request) => {
      const refuse = (status: number) => ({ status, type: "text/plain", body: "" });
      if (!hasToken(request.headers.authorization, token)) return refuse(403);
      if (request.method !== "POST" || request.path !== CONTROL_PATH) return refuse(404);
      const body = await request.readBody(MAX_REQUEST_BYTES);
      if (body === undefined) return refuse(413);
      const lines = backfillLines(daemon, JSON.parse(body) as BackfillFilter, request.signal);
      return { type: "application/x-ndjson", body: lines };
    },
    onError: (error) => daemon.context.log.error({ error: String(error) }, "control request failed"),
  });
  const address: ControlAddress = { port: Number(new URL(server.origin).port), token };
  // The mode counts only for a new file.
  rmSync(file, { force: true });
  writeFileSync(file, `${JSON.stringify(address)}\n`, { mode: 0o600, flag: "wx" });
  return {
    close: async () => {
      rmSync(file, { force: true });
      await server.close();
    },
  };
}

function hasToken(authorization: string | undefined, token: string): boolean {
  const given = Buffer.from(authorization ?? "");
  const expected = Buffer.from(`Bearer ${token}`);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** `signal` aborts when the caller leaves. */
function backfillLines(daemon: ControlledDaemon, filter: BackfillFilter, signal: AbortSignal): Readable {
  const lines = new PassThrough();
  const write = (line: BackfillLine) => void lines.write(`${JSON.stringify(line)}\n`);
  backfillNow(daemon, filter, signal, write)
    .then(
      (report) => write({ report }),
      (error: unknown) => write({ failure: serialiseFailure(error, "ingest_bug") }),
    )
    .finally(() => lines.end());
  return lines;
}

/** The work of the command `backfill`, done by the daemon beside its own. Both may fetch the same page: each commit is idempotent. */
async function backfillNow(
  { context, telemetry, supervisor }: ControlledDaemon,
  filter: BackfillFilter,
  signal: AbortSignal,
  write: (line: BackfillLine) => void,
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
      if (!stopping.signal.aborted) write({ progress: { rows, percent } });
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
