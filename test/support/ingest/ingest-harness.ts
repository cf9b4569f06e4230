import { join } from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import type { WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import { IngestThread, type IngestThreadOptions } from "../../../src/ingest/thread/ingest-thread.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { type Log, silentLog } from "../../../src/runtime/log.ts";
import { startWorker } from "../../../src/runtime/thread.ts";
import { ManualClock } from "../manual-clock.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";
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
  const ingest = await IngestThread.start({
    ...{ path, clock, log, startWorker },
    ...(onCommit ? { onCommit } : {}),
  });
  onTestFinished(() => ingest.close());
  const query = (sql: string) => {
    const reader = new Database(path, { readonly: true });
    try {
      return reader.prepare(sql).all() as Record<string, unknown>[];
    } finally {
      reader.close();
    }
  };
  return { ingest, query, path, clock };
}

/** The path of an empty warehouse that is deleted when the test ends. Each opening parses its views, so it has few of them. */
export function makeEmptyWarehouse({ hasAllViews = false } = {}): string {
  const path = join(temporaryFolder(), "mds.sqlite");
  copyEmptyWarehouse(path, hasAllViews ? undefined : viewsBesideSync);
  return path;
}

export const gap = { from: at("10:00:00"), to: at("12:00:00") };
/** The only page of a walk over `gap`. */
export const onlyPage: Omit<WalkPage, "pageId"> = {
  series: btc,
  position: { gap: gap, provenFrom: gap.to },
  isLast: true,
  ...walkSettings,
};

/** Like `startIngest`, in threads of its own. */
export function startIngestThread(options: { path?: string; log?: Log } = {}) {
  return startIngest({ ...options, startWorker });
}

/** Decodes and commits a page, as a walk does. */
export async function commitPage(
  ingest: IngestThread,
  page: Omit<WalkPage, "pageId" | "isLast">,
  body: ResponseBody,
) {
  const { stream } = page.series;
  const { pageId, ...read } = await ingest.call("readPage", { stream, series: page.series }, [body]);
  const commit = await ingest.call("commitWalkPage", {
    ...page,
    pageId,
    isLast: read.nextId === undefined,
  });
  return { ...read, ...commit };
}

export const coverageSql = "SELECT from_time, to_time, proof FROM coverage ORDER BY from_ts";
export const wholeCoverage = [
  { from_time: "2026-03-01T10:00:00.000000Z", to_time: "2026-03-01T12:00:00.000000Z", proof: "rows" },
];
