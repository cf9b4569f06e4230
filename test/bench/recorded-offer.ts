import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

/** The service keeps 30 seconds between records. */
export const CADENCE_MS = 30_000;
/** The engine cuts long holes into walks of four pages of 1998 records that count. */
export const ROWS_A_SLICE = 4 * 1998;
export const PAGES_A_SLICE = 4;
export const ROWS_A_PAGE = 2000;
const SLICE_MS = ROWS_A_SLICE * CADENCE_MS;
const DAY_MS = 86_400_000;

/** What is recorded: so many series, each so many slices back from a midnight. */
export interface Recording {
  readonly series: number;
  readonly slices: number;
  readonly toMs: number;
}

/** What the recorded service offers. */
export interface RecordedOffer {
  readonly baseUrl: string;
  readonly ids: readonly string[];
}

export interface RecordedService extends RecordedOffer, Recording {
  /** Where a window of the newest slices begins. */
  windowFrom(slices: number): number;
  /** So long every answer takes from now on. */
  setLatency(ms: number): Promise<void>;
  stop(): Promise<void>;
}

/** The moments at which the engine begins its walks over the recording, newest first. */
export function sliceEnds({ slices, toMs }: Recording): number[] {
  return Array.from({ length: slices }, (_, index) => toMs - index * SLICE_MS);
}

/** Starts the service in a process of its own, once every page has been made. */
export async function startRecordedService(series: number, slices: number): Promise<RecordedService> {
  const toMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;
  const recording: Recording = { series, slices, toMs };
  const script = resolve(import.meta.dirname, "recorded-service.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(recording)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const first = once(createInterface({ input: child.stdout }), "line") as Promise<[string]>;
  const died = once(child, "exit").then(() => Promise.reject(new Error("the recorded service died")));
  const [line] = await Promise.race([first, died]);
  died.catch(() => {});
  const offer = JSON.parse(line) as RecordedOffer;
  return {
    ...recording,
    ...offer,
    windowFrom: (newest) => toMs - newest * SLICE_MS,
    async setLatency(ms) {
      await fetch(`${offer.baseUrl}/latency?ms=${ms}`);
    },
    async stop() {
      child.kill("SIGTERM");
      await died.catch(() => {});
    },
  };
}
