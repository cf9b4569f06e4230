import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

/** The time between two records of a series. */
export const CADENCE_MS = 30_000;
/** Four pages, with two rows of each to spare. */
export const ROWS_PER_SLICE = 4 * 1998;
/** Rows that are compressed together. Divides a page. */
export const CHUNK_ROWS = 100;
export const PAGES_PER_SLICE = 4;
export const ROWS_PER_PAGE = 2000;
const SLICE_MS = ROWS_PER_SLICE * CADENCE_MS;
const DAY_MS = 86_400_000;

/** What is recorded: a number of series, and slices of each, back from a midnight. */
export interface Recording {
  readonly series: number;
  readonly slices: number;
  readonly toMs: number;
}

/** Where the recorded service listens, and which series it has. */
export interface RecordedServiceInfo {
  readonly baseUrl: string;
  readonly ids: readonly string[];
}

export interface RecordedService extends RecordedServiceInfo, Recording {
  readonly fromMs: number;
  /** Delays every response from now on. */
  setLatency(ms: number): Promise<void>;
  stop(): Promise<void>;
}

/** Enough for all slices and a last page that reaches below them. */
export function countRecordedPages({ slices }: Recording): number {
  return Math.ceil((slices * ROWS_PER_SLICE) / ROWS_PER_PAGE) + 1;
}

/** The ends of the slices, newest first. */
export function sliceEnds({ slices, toMs }: Recording): number[] {
  return Array.from({ length: slices }, (_, index) => toMs - index * SLICE_MS);
}

/** Starts the service in its own process, and waits until every page is recorded. */
export async function startRecordedService(series: number, slices: number): Promise<RecordedService> {
  const toMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;
  const recording: Recording = { series, slices, toMs };
  const script = resolve(import.meta.dirname, "recorded-service.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(recording)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const first = once(createInterface({ input: child.stdout }), "line") as Promise<[string]>;
  const died = once(child, "exit").then(() => Promise.reject(new Error("the recorded service exited")));
  const [line] = await Promise.race([first, died]);
  died.catch(() => {});
  const info = JSON.parse(line) as RecordedServiceInfo;
  return {
    ...recording,
    ...info,
    fromMs: toMs - slices * SLICE_MS,
    async setLatency(ms) {
      await fetch(`${info.baseUrl}/latency?ms=${ms}`);
    },
    async stop() {
      child.kill("SIGTERM");
      await died.catch(() => {});
    },
  };
}
