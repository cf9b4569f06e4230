import type { Page } from "playwright-core";
import { type Micros, startOfDay } from "../../../src/model/time.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { lastHour } from "../present.ts";
import { DAY, fill, HOUR, nowTs, STEP } from "../warehouse/filled-warehouse.ts";
import { decimal } from "../warehouse/records.ts";
import { hostileName } from "./heatmap-content.ts";

const MINUTE_MICROS = 60_000_000;

const firstTs = () => lastHour - 3 * DAY;
const settledTo = () => lastHour - 40 * MINUTE_MICROS;

const hoursAgo = (from: number, to: number) => ({ from: lastHour - from * HOUR, to: lastHour - to * HOUR });

/** What is missing of BTC. */
export const gapRanges = {
  get lost() {
    return hoursAgo(50, 47);
  },
  get open() {
    return hoursAgo(30, 26);
  },
  get empty() {
    return hoursAgo(14, 12);
  },
  /** Shorter than a bar. */
  get sliver() {
    const { from } = hoursAgo(6.5, 0);
    return { from, to: from + 5 * MINUTE_MICROS };
  },
};

/** A smooth price curve that is the same in every run. */
function priceAt(ts: Micros, level: number): string {
  const hours = (ts - firstTs()) / HOUR;
  const waves = Math.sin(hours / 9) * 0.02 + Math.sin(hours * 1.7) * 0.006 + Math.sin(hours * 31) * 0.002;
  return (level * (1 + waves)).toFixed(level > 100 ? 2 : 6);
}

/** A series with a tick every 30 seconds but in the ranges that are missing. */
function ticksOf(indexId: string, level: number, missing: readonly { from: Micros; to: Micros }[] = []) {
  const count = (Math.max(lastHour, nowTs - 5_000_000) - firstTs()) / STEP;
  const timestamps = Array.from({ length: Math.floor(count) + 1 }, (_, i) => firstTs() + i * STEP);
  const starts = [firstTs(), ...missing.map(({ to }) => to)];
  return {
    indexId,
    from: firstTs(),
    // This huge step keeps the end of the target fixed, so that the head stays `settling` however slow the test is.
    rules: { step: settledTo() },
    rows: timestamps
      .filter((ts) => !missing.some(({ from, to }) => ts >= from && ts < to))
      .map((ts) => ({ ts, price: decimal(priceAt(ts, level)) })),
    settled: starts.map((from, i) => [from, missing[i]?.from ?? settledTo()] as const),
  };
}

/** Three days of ticks every 30 seconds, with every kind of gap in BTC and no gap in the others. */
export function fillBars(transaction: Transaction): void {
  const { lost, empty } = gapRanges;
  fill(transaction, {
    assets: {
      "btc-id": { symbol: "BTC", name: "Bitcoin" },
      "eth-id": { symbol: "ETH", name: "Ethereum" },
      "odd-id": hostileName,
      "xrp-id": { symbol: "XRP", name: "Ripple" },
      "ltc-id": { symbol: "LTC", name: "Litecoin" },
    },
    series: [
      {
        ...ticksOf("btc-id", 61_000, Object.values(gapRanges)),
        lost: [[lost.from, lost.to]],
        empty: [[empty.from, empty.to]],
      },
      ticksOf("eth-id", 3_300),
      ticksOf("odd-id", 0.00042),
      ticksOf("xrp-id", 2),
    ],
  });
}

/** How many daily bars LTC and XRP have. */
export const DAILY_BARS = 1_500;
/** Days before today of which XRP has lost its daily bars. */
export const LOST = { from: 30, to: 25 };

/** Besides the ticks, years of daily bars: of XRP, and of LTC, which has no ticks. */
export function fillDailyBars(transaction: Transaction): void {
  fillBars(transaction);
  const dayAgo = (days: number) => startOfDay(nowTs) - days * DAY;
  const rows = Array.from({ length: DAILY_BARS }, (_, i) => i + 1).map((ago) => {
    const [open = 0, close = 0] = [ago, ago - 1].map((days) => Number(priceAt(dayAgo(days), 2)));
    return {
      ts: dayAgo(ago),
      open: decimal(open.toFixed(6)),
      high: decimal((Math.max(open, close) + 0.01).toFixed(6)),
      low: decimal((Math.min(open, close) - 0.01).toFixed(6)),
      close: decimal(close.toFixed(6)),
    };
  });
  const [from, lost, rest] = [dayAgo(DAILY_BARS), dayAgo(LOST.from), dayAgo(LOST.to)];
  const stream = "ohlcv" as const;
  fill(transaction, {
    series: [
      {
        ...{ stream, indexId: "xrp-id", from, rules: { settleDelay: STEP } },
        rows: rows.filter(({ ts }) => ts < lost || ts >= rest),
        settled: [
          [from, lost],
          [rest, dayAgo(0)],
        ],
        lost: [[lost, rest]],
      },
      {
        ...{ stream, indexId: "ltc-id", from, rules: { settleDelay: STEP }, rows },
        settled: [[from, dayAgo(0)]],
      },
    ],
  });
}

/** Where the candles are drawn. */
export const pane = "#chart td:nth-child(2) canvas >> nth=0";

/** Points at a place of the pane, in pixels, and waits until the page tells the bar there. */
export async function pointAt(page: Page, x: number, y: number): Promise<void> {
  const box = await page.locator(pane).boundingBox();
  await page.mouse.move((box?.x ?? 0) + x, (box?.y ?? 0) + y);
  await page.evaluate("new Promise(requestAnimationFrame)");
}
