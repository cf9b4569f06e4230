import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import { IngestThread, type IngestThreadOptions } from "../../../src/ingest/thread/ingest-thread.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { type Log, silentLog } from "../../../src/runtime/log.ts";
import { startWorker } from "../../../src/runtime/thread.ts";
import { ManualClock } from "../manual-clock.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";
import { queryFile } from "../warehouse/warehouse-file.ts";
import { startIngestInProcess } from "./in-process-ingest.ts";
import { at, btc, walkSettings } from "./pages.ts";

/** Starts ingest with its own warehouse and a manual clock: in this thread, unless `startWorker` starts others. */
export async function startIngest({
  path = makeEmptyWarehouse(),
  log = silentLog as Log,
  startWorker = startIngestInProcess,
  onCommit = undefined as IngestThreadOptions["onCommit"],
} = {}) {
  const clock = new ManualClock("2026-03-01T18:00:00Z");
  const ingest = await new IngestThread({
    ...{ path, clock, log, startWorker },
    ...(onCommit ? { onCommit } : {}),
  }).start();
  onTestFinished(() => ingest.close());
  return { ingest, query: (sql: string) => queryFile(path, sql), path, clock };
}

/** The path of an empty warehouse that is deleted when the test ends. Each opening parses its views, so it has few of them. */
export function makeEmptyWarehouse({ hasAllViews = false } = {}): string {
  const path = join(temporaryFolder(), "mds.sqlite");
  copyEmptyWarehouse(path, hasAllViews ? undefined : viewsBesideSync);
  return path;
}

export const gap = { from: at("10:00:00"), to: at("12:00:00") };
/** The only page of a walk over `gap`. */
export const onlyPage: WalkPage = {
  series: btc,
  position: { gap: gap, provenFrom: gap.to },
  isLast: true,
  ...walkSettings,
};

/** Like `startIngest`, in threads of its own. */
export function startIngestThread(options: { path?: string; log?: Log } = {}) {
  return startIngest({ ...options, startWorker });
}

/** Decodes a page, and returns what commits it, as a walk does. */
export async function readPage(ingest: IngestThread, page: Omit<WalkPage, "isLast">, body: ResponseBody) {
  const pages = ingest.openPages({ stream: page.series.stream, series: page.series });
  const { number, ...read } = await pages.read(body);
  const call = { ...page, isLast: read.nextId === undefined, reader: pages.id, number };
  return async () => ({ ...read, ...(await ingest.call("commitWalkPage", call)) });
}

/** Decodes and commits a page. */
export async function commitPage(...read: Parameters<typeof readPage>) {
  const commit = await readPage(...read);
  return commit();
}

export const coverageSql = "SELECT from_time, to_time, proof FROM coverage ORDER BY from_ts";
export const wholeCoverage = [
  { from_time: "2026-03-01T10:00:00.000000Z", to_time: "2026-03-01T12:00:00.000000Z", proof: "rows" },
];
