import { gzipSync } from "node:zlib";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import type { Series } from "../../../src/model/streams.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros, parseTimestamp } from "../../../src/model/time.ts";

export const btc: Series = { stream: "index_ticks", indexType: "GWA", indexId: "btc-id" };

/** A moment of the test's day. */
export function at(time: string): Micros {
  const micros = parseTimestamp(`2026-03-01T${time}Z`);
  if (micros === undefined) throw new Error(`not a time: ${time}`);
  return micros;
}

export const SECOND = MICROS_PER_SECOND;

export interface Row {
  readonly ts: Micros;
  readonly price?: string;
  readonly indexId?: string;
}

/** Every 30 seconds in [from, to), newest first. */
export function ticks(from: Micros, to: Micros): Row[] {
  const rows: Row[] = [];
  for (let ts = Math.ceil(from / (30 * SECOND)) * 30 * SECOND; ts < to; ts += 30 * SECOND)
    rows.unshift({ ts });
  return rows;
}

export function recordOf({ ts, price, indexId = btc.indexId }: Row) {
  const usual = (60_000 + ((ts / SECOND) % 1000)).toFixed(2);
  return {
    id: `r${ts}`,
    indexId,
    indexType: "GWA",
    price: price ?? usual,
    volume: "12.5",
    timestamp: formatTimestamp(ts),
  };
}

export function bodyOf(content: unknown): ResponseBody {
  const json = Buffer.from(JSON.stringify(content));
  const bytes = new Uint8Array(gzipSync(json));
  return { bytes, ageMs: 0, requestedAt: 0, asOf: undefined };
}

export function pageOf(rows: readonly Row[], nextId?: string): ResponseBody {
  return bodyOf({ content: rows.map(recordOf), nextId });
}

export function liveMessage(row: Row): string {
  return JSON.stringify({ event: "INDEX_TICKER", ...recordOf(row) });
}
