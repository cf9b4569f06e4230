import type { Page } from "playwright-core";
import { type Micros, startOfDay } from "../../../src/model/time.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import { writeLookup } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { lastHour } from "../present.ts";
import { bar, decimal, tick } from "../warehouse/records.ts";
import { DAY, HOUR, hostileName, nowTs } from "./filled-warehouse.ts";

export { lastHour };

const REFRESH_MICROS = 30_000_000;
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

function fill(
  transaction: Transaction,
  indexId: string,
  level: number,
  missing: { from: Micros; to: Micros }[],
) {
  const ticks = [];
  for (let ts = firstTs(); ts <= Math.max(lastHour, nowTs - 5_000_000); ts += REFRESH_MICROS) {
    if (!missing.some(({ from, to }) => ts >= from && ts < to))
      ticks.push(tick(ts, priceAt(ts, level), { indexType: "GWA", indexId }));
  }
  writeRecords(transaction, "index_ticks", ticks, "rest");
  const line = {
    stream: "index_ticks",
    series: transaction.dictionary.getSeriesKey("GWA", indexId),
  } as const;
  let from = firstTs();
  for (const gap of [...missing, { from: settledTo(), to: settledTo() }]) {
    settle(transaction, line, { from, to: gap.from }, "rows");
    from = gap.to;
  }
  return line;
}

const names = {
  "btc-id": ["BTC", "Bitcoin"],
  "eth-id": ["ETH", "Ethereum"],
  "odd-id": [hostileName, hostileName],
  "xrp-id": ["XRP", "Ripple"],
  "ltc-id": ["LTC", "Litecoin"],
};

/** Three days of ticks every 30 seconds, with every kind of gap in BTC and no gap in the others. */
export function fillBars(transaction: Transaction): void {
  const emptyFields = { url: null, contractAddress: null, quality: null, extra: null };
  writeLookup(
    transaction,
    "assets",
    Object.entries(names).map(([id, [symbol = "", name = ""]]) => ({
      ...{ id, symbol, name, status: "ACTIVE", type: "CRYPTO" },
      ...emptyFields,
    })),
    { isComplete: true },
  );
  const btc = fill(transaction, "btc-id", 61_000, Object.values(gapRanges));
  const levels = { "eth-id": 3_300, "odd-id": 0.00042, "xrp-id": 2 };
  const others = Object.entries(levels).map(([id, level]) => fill(transaction, id, level, []));
  const { lost, empty } = gapRanges;
  settle(transaction, btc, lost, "lost", "aged out");
  settle(transaction, btc, empty, "empty", "the service has none");
  // This huge step keeps the end of the target fixed, so that the head stays `settling` however slow the test is.
  const rules = {
    from: firstTs(),
    settleDelay: 2 * REFRESH_MICROS,
    period: REFRESH_MICROS,
    step: settledTo(),
    serviceWindow: 200 * DAY,
  };
  declareTargets(
    transaction,
    "index_ticks",
    [btc, ...others].map((key) => ({ key, ...rules })),
    nowTs,
  );
}

/** How many daily bars LTC and XRP have. */
export const DAILY_BARS = 1_500;
/** Days before today of which XRP has lost its daily bars. */
export const LOST_DAYS = { from: 30, to: 25 };

/** Besides the ticks, years of daily bars: of XRP, and of LTC, which has no ticks. */
export function fillDailyBars(transaction: Transaction): void {
  fillBars(transaction);
  const today = startOfDay(nowTs);
  const dayAgo = (days: number) => today - days * DAY;
  const keyOf = (indexId: string) =>
    ({ stream: "ohlcv", series: transaction.dictionary.getSeriesKey("GWA", indexId) }) as const;
  for (const indexId of ["xrp-id", "ltc-id"]) {
    const lost = indexId === "xrp-id" ? LOST_DAYS : { from: 0, to: 0 };
    const days = Array.from({ length: DAILY_BARS }, (_, i) => i + 1);
    const records = days
      .filter((ago) => ago > lost.from || ago <= lost.to)
      .map((ago) => {
        const [open = 0, close = 0] = [ago, ago - 1].map((days) => Number(priceAt(dayAgo(days), 2)));
        return bar(dayAgo(ago), close.toFixed(6), {
          indexId,
          open: decimal(open.toFixed(6)),
          high: decimal((Math.max(open, close) + 0.01).toFixed(6)),
          low: decimal((Math.min(open, close) - 0.01).toFixed(6)),
        });
      });
    writeRecords(transaction, "ohlcv", records, "rest");
    settle(transaction, keyOf(indexId), { from: dayAgo(DAILY_BARS), to: dayAgo(lost.from) }, "rows");
  }
  const xrp = keyOf("xrp-id");
  settle(transaction, xrp, { from: dayAgo(LOST_DAYS.from), to: dayAgo(LOST_DAYS.to) }, "lost", "aged out");
  settle(transaction, xrp, { from: dayAgo(LOST_DAYS.to), to: today }, "rows");
  const rules = { from: dayAgo(DAILY_BARS), settleDelay: REFRESH_MICROS, period: DAY, step: DAY };
  declareTargets(
    transaction,
    "ohlcv",
    [xrp, keyOf("ltc-id")].map((key) => ({ key, ...rules, serviceWindow: null })),
    nowTs,
  );
}

/** Where the candles are drawn. */
export const pane = "#chart td:nth-child(2) canvas >> nth=0";

/** Points at a place of the pane, in pixels, and waits until the page tells the bar there. */
export async function pointAt(page: Page, x: number, y: number): Promise<void> {
  const box = await page.locator(pane).boundingBox();
  await page.mouse.move((box?.x ?? 0) + x, (box?.y ?? 0) + y);
  await page.evaluate("new Promise(requestAnimationFrame)");
}
