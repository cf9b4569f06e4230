import { parseDecimal } from "../../../src/model/decimal.ts";
import type { DailyBar, ExchangeTick, IndexTick } from "../../../src/model/records.ts";
import { parseTimestamp } from "../../../src/model/time.ts";
import { emptyRecord } from "../empty-record.ts";

export function parseTs(text: string): number {
  const ts = parseTimestamp(text);
  if (ts === undefined) throw new Error(`not a timestamp: ${text}`);
  return ts;
}

export function decimal(text: string) {
  const read = parseDecimal(text);
  if (!read) throw new Error(`not a decimal: ${text}`);
  return read;
}

export function tick(ts: number, price: string, more: Partial<IndexTick> = {}): IndexTick {
  return {
    indexType: "GWA",
    indexId: "btc-id",
    ts,
    price: decimal(price),
    volume: decimal("1000.5"),
    ...{ tickVolume: null, name: null, quality: null, extra: null, ...more },
  };
}

export function bar(ts: number, close: string, more: Partial<DailyBar> = {}): DailyBar {
  return {
    ...{ recordId: `bar-${ts}`, indexType: "GWA", indexId: "btc-id", ts },
    ...{ open: decimal("1"), high: decimal("9"), low: decimal("0.5"), close: decimal(close) },
    ...{ volume: decimal("10"), volumeUsd: decimal("20"), vwap: null, twap: null },
    ...{ quality: null, extra: null, ...more },
  };
}

export function exchangeTick(ts: number, last: string, more: Partial<ExchangeTick> = {}): ExchangeTick {
  return {
    ...emptyRecord("exchange_ticks"),
    ...{ exchangeId: "kraken-id", marketId: "btc-usd-id", ts, last: decimal(last), bid: decimal("1.5") },
    ...{ volume: decimal("12345.678"), lastMoved: ts - 1234567, ...more },
  };
}
