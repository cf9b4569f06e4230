import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import {
  type BackfillLine,
  CONTROL_PATH,
  type ControlAddress,
  controlFileOf,
} from "../../daemon/control-server.ts";
import { deserialiseFailure, errorCode, Failure } from "../../model/failure.ts";
import type { BackfillFilter, BackfillReport } from "../../sync/history/backfill.ts";
import { unfinishedFailure } from "./context.ts";

interface DaemonBackfillOptions {
  readonly warehousePath: string;
  readonly request: BackfillFilter;
  /** Aborts when the operator stops the command: the daemon then stops this work too. */
  readonly stopping: AbortSignal;
  readonly onProgress: (counts: { readonly rows: number; readonly percent: number }) => void;
}

/** Asks the running daemon of the warehouse to fill the gaps now. Returns undefined if none runs. */
export async function backfillThroughDaemon(
  options: DaemonBackfillOptions,
): Promise<BackfillReport | undefined> {
  const address = readControlAddress(controlFileOf(options.warehousePath));
  const response = address && (await send(address, options));
  // A killed daemon leaves its file, and another program may have its port.
  if (!response?.body || response.status !== 200) return void (await response?.body?.cancel());
  try {
    for await (const text of createInterface({ input: Readable.fromWeb(response.body) })) {
      const line = JSON.parse(text) as BackfillLine;
      if ("report" in line) return line.report;
      if ("failure" in line) throw deserialiseFailure(line.failure);
      options.onProgress(line.progress);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
  }
  throw unfinishedFailure(options.stopping.reason, "the daemon ended");
}

function readControlAddress(file: string): ControlAddress | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8")) as ControlAddress;
  } catch (error) {
    const code = errorCode(error);
    if (code !== "EACCES") return undefined;
    throw new Failure(`cannot read ${file}, which has the address of the daemon (${code})`, {
      code: "not_readable",
      remedy: "run this command as the daemon's user",
    });
  }
}

/** Returns undefined if nothing listens there. */
async function send(
  { port, token }: ControlAddress,
  { request, stopping }: DaemonBackfillOptions,
): Promise<Response | undefined> {
  try {
    return await fetch(`http://127.0.0.1:${port}${CONTROL_PATH}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(request),
      signal: stopping,
    });
  } catch (error) {
    if (error instanceof Error && errorCode(error.cause) === "ECONNREFUSED") return undefined;
    throw unfinishedFailure(stopping.reason, "the daemon ended");
  }
}
