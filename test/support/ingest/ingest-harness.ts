import { join } from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import type { WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import { Ingest } from "../../../src/ingest/thread/ingest-thread.ts";
import type { Body } from "../../../src/model/response-body.ts";
import { type Log, silentLog } from "../../../src/runtime/log.ts";
import { TurnedClock } from "../manual-clock.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { at, btc, SECOND } from "./pages.ts";

/** An ingest thread on a warehouse of its own, on a clock that is turned. */
export async function start({ path = join(temporaryFolder(), "mds.sqlite"), log = silentLog as Log } = {}) {
  const clock = new TurnedClock("2026-03-01T18:00:00Z");
  const ingest = await Ingest.start({ path, clock, log });
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

export const hole = { from: at("10:00:00"), to: at("12:00:00") };
/** The only page of a walk over the hole. */
export const wholePage: Omit<WalkPage, "held"> = {
  series: btc,
  position: { hole, upper: hole.to },
  ends: true,
  settleDelay: 60 * SECOND,
  request: "GET /index-ticker",
};

/** Reads a page and commits it, as a walk does. */
export async function commitPage(ingest: Ingest, page: Omit<WalkPage, "held" | "ends">, body: Body) {
  const { stream } = page.series;
  const { held, ...read } = await ingest.call("readPage", { stream, series: page.series }, [body]);
  const commit = await ingest.call("commitWalkPage", { ...page, held, ends: read.nextId === undefined });
  return { ...read, ...commit };
}

export const coverageSql = "SELECT from_time, to_time, proof FROM coverage ORDER BY from_ts";
export const whole = [
  { from_time: "2026-03-01T10:00:00.000000Z", to_time: "2026-03-01T12:00:00.000000Z", proof: "rows" },
];
