import { randomBytes, timingSafeEqual } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { PassThrough, type Readable } from "node:stream";
import { type SerialisedFailure, serialiseFailure } from "../model/failure.ts";
import { startHttpServer } from "../runtime/http-server.ts";
import type { BackfillFilter, BackfillReport } from "../sync/history/backfill.ts";
import { resolvePath } from "../warehouse/sqlite/disk.ts";

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

/** The file beside the warehouse from which other commands of the same user learn how to reach its daemon. */
export function controlFileOf(warehousePath: string): string {
  return `${resolvePath(warehousePath)}.control`;
}

interface ControlServerOptions {
  readonly warehousePath: string;
  /** Fills the gaps. `signal` aborts when the caller leaves; call `onProgress` now and then. */
  readonly backfill: (
    request: BackfillFilter,
    signal: AbortSignal,
    onProgress: (rows: number, percent: number) => void,
  ) => Promise<BackfillReport>;
  readonly onError: (error: unknown) => void;
}

/**
 * Lets `backfill --now` use the running daemon, on a loopback port of its own. The token is in a file that only the daemon's
 * user can read, so that neither another user nor a web page can send a request.
 */
export async function startControlServer(options: ControlServerOptions): Promise<{ close(): Promise<void> }> {
  const token = randomBytes(32).toString("hex");
  const file = controlFileOf(options.warehousePath);
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
      const lines = backfillLines(JSON.parse(body) as BackfillFilter, request.signal, options.backfill);
      return { type: "application/x-ndjson", body: lines };
    },
    onError: options.onError,
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

function backfillLines(
  request: BackfillFilter,
  signal: AbortSignal,
  backfill: ControlServerOptions["backfill"],
): Readable {
  const lines = new PassThrough();
  const write = (line: BackfillLine) => void lines.write(`${JSON.stringify(line)}\n`);
  backfill(request, signal, (rows, percent) => write({ progress: { rows, percent } }))
    .then(
      (report) => write({ report }),
      (error: unknown) => write({ failure: serialiseFailure(error, "ingest_bug") }),
    )
    .finally(() => lines.end());
  return lines;
}
