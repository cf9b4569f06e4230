import { randomBytes, timingSafeEqual } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type SerialisedFailure, serialiseFailure } from "../model/failure.ts";
import type { Stream } from "../model/streams.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { BackfillReport } from "../sync/history/backfill.ts";
import { resolvePath } from "../warehouse/sqlite/disk.ts";

/** What `backfill --now` asks for, as JSON. An absent member means no limit. */
export interface BackfillRequest {
  readonly streams?: readonly Stream[];
  readonly series?: readonly string[];
  readonly range?: TimeRange;
  readonly fetchesUnselected?: boolean;
}

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

/** The file beside the warehouse that tells other commands of the same user how to reach its daemon. */
export function controlFileOf(warehousePath: string): string {
  return `${resolvePath(warehousePath)}.control`;
}

interface ControlServerOptions {
  readonly warehousePath: string;
  /** Fills the gaps. `signal` aborts when the caller leaves; call `onProgress` now and then. */
  readonly backfill: (
    request: BackfillRequest,
    signal: AbortSignal,
    onProgress: (rows: number, percent: number) => void,
  ) => Promise<BackfillReport>;
}

/**
 * Lets `backfill --now` use the running daemon, on a loopback port of its own. The token is in a file that only the daemon's
 * user can read, so that neither another user nor a web page can send a request.
 */
export async function startControlServer(options: ControlServerOptions): Promise<{ close(): Promise<void> }> {
  const token = randomBytes(32).toString("hex");
  const file = controlFileOf(options.warehousePath);
  const server = createServer((request, response) => {
    if (!hasToken(request, token)) return void response.writeHead(403).end();
    if (request.method !== "POST" || request.url !== CONTROL_PATH) return void response.writeHead(404).end();
    answer(request, response, options.backfill).catch((error: unknown) => response.destroy(toError(error)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const address: ControlAddress = { port, token };
  // The mode counts only for a new file.
  rmSync(file, { force: true });
  writeFileSync(file, `${JSON.stringify(address)}\n`, { mode: 0o600, flag: "wx" });
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        rmSync(file, { force: true });
      }),
  };
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const given = Buffer.from(headers.authorization ?? "");
  const expected = Buffer.from(`Bearer ${token}`);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  backfill: ControlServerOptions["backfill"],
): Promise<void> {
  const body = JSON.parse(await readText(request)) as BackfillRequest;
  const left = new AbortController();
  response.on("close", () => left.abort(new Error("the caller has left")));
  const write = (line: BackfillLine) => void response.write(`${JSON.stringify(line)}\n`);
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  try {
    const onProgress = (rows: number, percent: number) => write({ progress: { rows, percent } });
    write({ report: await backfill(body, left.signal, onProgress) });
  } catch (error) {
    if (!left.signal.aborted) write({ failure: serialiseFailure(error, "ingest_bug") });
  }
  response.end();
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > MAX_REQUEST_BYTES) throw new Error("the request is too large");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
