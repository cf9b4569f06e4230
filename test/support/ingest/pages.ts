import { gzipSync } from "node:zlib";
import type { WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import type { Series } from "../../../src/model/streams.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros, parseTimestamp } from "../../../src/model/time.ts";

export const btc: Series = { stream: "index_ticks", indexType: "GWA", indexId: "btc-id" };

/** A timestamp on the day of the test. */
export function at(time: string): Micros {
  const micros = parseTimestamp(`2026-03-01T${time}Z`);
  if (micros === undefined) throw new Error(`not a time: ${time}`);
  return micros;
}

export const SECOND = MICROS_PER_SECOND;

/** What the walks of the tests know about their pages of ticks. */
export const walkSettings: Pick<
  WalkPage,
  "timing" | "confirmation" | "isHead" | "isSilenceConfirmed" | "request"
> = {
  timing: {
    settleDelay: 60 * SECOND,
    period: 30 * SECOND,
    quietMargin: 3600 * SECOND,
    serviceWindow: null,
  },
  confirmation: { answers: 1, over: 0 },
  isHead: false,
  isSilenceConfirmed: false,
  request: "GET /index-ticker",
};

export interface TestTick {
  readonly ts: Micros;
  readonly price?: string;
  readonly indexId?: string;
}

/** A tick every 30 seconds in [from, to), newest first. */
export function makeTicks(from: Micros, to: Micros): TestTick[] {
  const rows: TestTick[] = [];
  for (let ts = Math.ceil(from / (30 * SECOND)) * 30 * SECOND; ts < to; ts += 30 * SECOND)
    rows.unshift({ ts });
  return rows;
}

export function tickRecord({ ts, price, indexId = btc.indexId }: TestTick) {
  const defaultPrice = (60_000 + ((ts / SECOND) % 1000)).toFixed(2);
  const names = { id: `r${ts}`, indexId, indexType: "GWA" };
  return { ...names, price: price ?? defaultPrice, volume: "12.5", timestamp: formatTimestamp(ts) };
}

export const assetRecord = (id: string, status = "ACTIVE") => ({
  ...{ id, symbol: id, name: id, type: "CRYPTO", status, url: null },
});

export function jsonBody(content: unknown): ResponseBody {
  const json = Buffer.from(JSON.stringify(content));
  const bytes = new Uint8Array(gzipSync(json));
  return { bytes, ageMs: 0, requestedAt: 0, asOf: undefined };
}

export function tickPage(rows: readonly TestTick[], nextId?: string): ResponseBody {
  return jsonBody({ content: rows.map(tickRecord), nextId });
}

/** A tick of BTC/USD on Kraken on the day of the test, as the websocket sends it. */
export function exchangeMessage(time: string, more: object = {}): string {
  return JSON.stringify({
    ...{ event: "EXCHANGE_TICKER", id: time, exchangeId: "kraken", marketId: "btc-usd" },
    ...{ last: "1", volume: "2", bid: "1", ask: "2", timestamp: `2026-03-01T${time}Z`, ...more },
  });
}

export function liveMessage(row: TestTick): string {
  return JSON.stringify({ event: "INDEX_TICKER", ...tickRecord(row) });
}
