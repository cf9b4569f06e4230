// One pair on all exchanges, compared with its index.

import uPlot from "uplot";
import type {
  BestPrices,
  PairSummary,
  Quote,
  QuotesResult,
  SpreadsResult,
} from "../../../model/answers/market.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import { isNamed, nameInPath, onNavigate, saveAddress, showUnknown } from "../shared/address.ts";
import { cssColour, withOpacity } from "../shared/layout.ts";
import { rereadOnNews } from "../shared/live.ts";
import { byId, cell, element, fact, setRows, setText, showEmpty } from "../shared/page-base.ts";
import { drawPlot, plotOptions } from "../shared/plot.ts";
import { poll, read, startReading } from "../shared/reading.ts";
import { createSortableTable } from "../shared/sortable-table.ts";
import { amount, countNoun, direction, duration, momentText, quote, signOf } from "../shared/text-format.ts";

const POLL_SECONDS = 30;
const SPREAD_SECONDS = 60;
/** The scale of deviations: a dead exchange is hundreds of points away, and the others are not one pixel. */
const SCALE_BPS = 20;
/** Below it each moment is marked: a line between few of them looks like knowledge. */
const MAX_MARKED_POINTS = 60;
const MAX_EDGE_EXCHANGES = 12;
const MAX_EDGE_EXCHANGES_ON_PHONE = 4;
const phone = matchMedia("(max-width: 760px)");
let pair = "";
/** The moment of the answer, in microseconds. */
let shownAt = 0;
let pairs: readonly PairSummary[] = [];
const pairSelect = byId("pair", HTMLSelectElement);
const searchInput = byId("search", HTMLInputElement);
const searchInAddress = () => new URLSearchParams(location.search).get("q") ?? "";
searchInput.value = searchInAddress();

const points = (value: number | null, isSigned = false) => {
  if (value === null) return "–";
  const size = Math.abs(value).toFixed(1);
  const sign = size === "0.0" ? "" : value < 0 ? "−" : isSigned ? "+" : "";
  return `${sign}${size} bp`;
};

/** The bar from the middle; what is beyond the scale ends in an arrow. */
function deviationBar(deviation: number): HTMLElement {
  const isClipped = Math.abs(deviation) > SCALE_BPS;
  const bar = element("span", {
    className: `bar ${direction(deviation)}${isClipped ? " clipped" : ""}`,
  });
  const fraction = (Math.min(SCALE_BPS, Math.abs(deviation)) / SCALE_BPS) * 50;
  bar.style.width = `${fraction.toFixed(1)}%`;
  bar.style.left = `${(deviation < 0 ? 50 - fraction : 50).toFixed(1)}%`;
  return element("span", { className: "track" }, bar);
}

/** Quotes that can be traded at: live, and they move. */
const isTradable = ({ is_live, is_still }: Quote) => is_live === 1 && is_still === 0;

function show({ generated_at, best, quotes }: QuotesResult): void {
  const now = Date.parse(generated_at) * 1000;
  setText("pair-title", pair);
  document.title = `${pair} · mds-sync`;
  byId("no-quotes").hidden = quotes.length > 0;
  const still = quotes.filter(({ is_live, is_still }) => is_live && is_still).length;
  setText(
    "quotes-note",
    `${countNoun(quotes.filter(isTradable).length, "live exchange")}${still > 0 ? `, ${still} without a move` : ""} · ${momentText(now)}`,
  );
  showFacts(best, quotes);
  shownAt = now;
  table.show(quotes);
  showEdges(quotes);
}

const table = createSortableTable<Quote>({
  id: "quotes",
  columns: [
    {
      label: "Exchange",
      key: "exchange",
      value: ({ exchange }) => exchange.toLowerCase(),
      isFirstAscending: true,
    },
    { label: "Last", key: "last", className: "number", value: ({ last }) => last },
    { label: "Bid", key: "bid", className: "number wide", value: ({ bid }) => bid },
    { label: "Ask", key: "ask", className: "number wide", value: ({ ask }) => ask, isFirstAscending: true },
    {
      label: "Spread",
      key: "spread",
      className: "number",
      value: (row) => row.spread_bps,
      isFirstAscending: true,
    },
    { label: "vs index", key: "deviation", className: "number", value: (row) => row.deviation_bps },
    { label: `−${SCALE_BPS} bp to +${SCALE_BPS} bp`, className: "deviation wide" },
    { label: "Volume, 24 h, USD", key: "volume", className: "number wide", value: (row) => row.volume_usd },
    { label: "Age", key: "age", className: "number", value: ({ ts }) => -ts, isFirstAscending: true },
  ],
  sortedBy: "-volume",
  onSort: () => pair && choose(pair, "replace"),
  rowsPerStep: 25,
  searchedText: ({ exchange }) => exchange,
  rowOf: quoteRow,
  isLast: (row) => !isTradable(row),
});

function quoteRow(row: Quote): HTMLTableRowElement {
  const remark = !row.is_live ? "no longer quoted" : row.is_still ? "not moved for an hour" : "";
  const off = isTradable(row) ? row.deviation_bps : null;
  const deviation = points(row.deviation_bps, true);
  return element(
    "tr",
    { "data-exchange": row.exchange, ...(remark ? { className: "faint" } : {}) },
    element(
      "td",
      {},
      element("b", {}, row.exchange),
      element("span", { className: "soft remark" }, remark ? ` ${remark}` : ""),
    ),
    cell("number last", quote(row.last)),
    cell("number wide", quote(row.bid)),
    cell("number wide", quote(row.ask)),
    cell("number spread", points(row.spread_bps)),
    cell(`number off ${off === null ? "" : signOf(deviation)}`, deviation),
    element(
      "td",
      { className: "deviation wide", "aria-hidden": "true" },
      ...(off === null ? [] : [deviationBar(off)]),
    ),
    cell("number wide", amount(row.volume_usd)),
    cell("number", duration((shownAt - row.ts) / 1e6)),
  );
}

const NO_QUOTES = {
  best_bid: null,
  best_bid_exchange: null,
  best_ask: null,
  best_ask_exchange: null,
  best_bid_any: null,
  best_ask_any: null,
};

function showFacts(best: BestPrices | null, rows: readonly Quote[]): void {
  const index = rows.reduce<Quote | undefined>(
    (newest, one) => ((one.index_ts ?? 0) > (newest?.index_ts ?? 0) ? one : newest),
    undefined,
  );
  const { best_bid, best_bid_exchange, best_ask, best_ask_exchange, best_bid_any, best_ask_any } =
    best ?? NO_QUOTES;
  // A quote that stands still only looks like the best one.
  const note = (exchange: string | null, own: number | null, any: number | null) =>
    `${exchange ?? ""}${any !== own ? `; ${quote(any)} with unmoved ones` : ""}`;
  const across =
    best_bid && best_ask && best_bid > 0 && best_ask > 0 ? (best_ask / best_bid - 1) * 10_000 : null;
  const facts = [
    ["Index", index ? quote(index.index_price) : "not synced", index?.index_source ?? ""],
    ["Best bid", quote(best_bid), note(best_bid_exchange, best_bid, best_bid_any)],
    ["Best ask", quote(best_ask), note(best_ask_exchange, best_ask, best_ask_any)],
    ["Across exchanges", points(across, true), "best ask − best bid"],
  ] as const;
  byId("facts").replaceChildren(
    ...facts.map(([label, value, note]) => fact(label, element("b", {}, value), note)),
  );
}

// ---- who buys where: the edge between each two exchanges

/** What buying at the ask of the row and selling at the bid of the column leaves, in basis points, before fees. */
function showEdges(quotes: readonly Quote[]): void {
  const traded = quotes.filter((one) => isTradable(one) && (one.bid ?? 0) > 0 && (one.ask ?? 0) > 0);
  const shown = traded.slice(0, phone.matches ? MAX_EDGE_EXCHANGES_ON_PHONE : MAX_EDGE_EXCHANGES);
  byId("edges-card").hidden = shown.length < 2;
  setText("edges-note", traded.length > shown.length ? `the ${shown.length} with the most volume` : "");
  const [up, down] = [cssColour("up"), cssColour("down")];
  const table = byId("edges", HTMLTableElement);
  const heads = shown.map(({ exchange }) => element("th", { scope: "col" }, exchange));
  table.tHead?.rows[0]?.replaceChildren(element("th", { scope: "col" }, "buy at ↓  sell at →"), ...heads);
  setRows(
    "edges",
    shown.map((buy) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, buy.exchange),
        ...shown.map((sell) => {
          if (sell === buy) return cell("number soft", "–");
          const edge = ((sell.bid ?? 0) / (buy.ask ?? 1) - 1) * 10_000;
          const shown = cell(`number ${edge > 0 ? "edge" : ""}`, signed(edge));
          const strength = Math.min(1, Math.abs(edge) / SCALE_BPS);
          shown.style.backgroundColor = withOpacity(
            edge > 0 ? up : down,
            edge > 0 ? 0.15 + 0.35 * strength : 0.16 * strength,
          );
          return shown;
        }),
      ),
    ),
  );
}

const signed = (value: number) => points(value, true).replace(" bp", "");

function showSpreads(answer: SpreadsResult): void {
  byId("no-spreads").hidden = answer.length > 1;
  byId("spread-plot").dataset.points = String(answer.length);
  drawPlot("spread-plot", (target) => {
    if (answer.length < 2) return undefined;
    return new uPlot(
      plotOptions(target, {
        xLabel: "time",
        xValues: (seconds) => momentText(seconds * 1e6, 16),
        isTime: true,
        yValue: (value, digits) => `${value.toFixed(digits)} bp`,
        lines: ["ask over bid"],
        hasPoints: answer.length < MAX_MARKED_POINTS,
      }),
      [answer.map(([ts]) => ts / 1e6), answer.map(([, bps]) => bps)],
      target,
    );
  });
}

/** The pair that the path names; without a name the first. Undefined if it is unknown. */
function pairInPath(): string | undefined {
  const name = nameInPath();
  return name === "" ? pairs[0]?.pair : pairs.find((one) => isNamed(one.pair, name))?.pair;
}

function choose(chosen: string, how: "push" | "replace"): void {
  pair = pairSelect.value = chosen;
  const text = searchInput.value.trim();
  const query = { ...(text ? { q: text } : {}), ...(table.sort() ? { sort: table.sort() } : {}) };
  saveAddress(how, pagePath("exchanges", chosen), new URLSearchParams(query));
}

pairSelect.addEventListener("change", () => {
  choose(pairSelect.value, "push");
  reread();
});
searchInput.addEventListener("input", () => {
  if (pair) choose(pair, "replace");
  table.search();
});
onNavigate(() => {
  searchInput.value = searchInAddress();
  table.sortBy(new URLSearchParams(location.search).get("sort"));
  pair = "";
  reread();
});
const reread = () => {
  void quotes.now();
  void spreads.now();
};

const pairsReading = startReading("pairs", "the pairs");
/** Pairs first: without one there is nothing to ask for. */
async function prepare(): Promise<boolean> {
  if (pairs.length === 0) {
    pairs = await read(pairsReading, "pairs");
    pairSelect.replaceChildren(
      ...pairs.map((one) => element("option", { value: one.pair }, `${one.pair} (${one.exchanges})`)),
    );
  }
  const found = pair || pairInPath();
  if (found) {
    showEmpty("");
    choose(found, "replace");
  } else if (pairs.length === 0) showEmpty("No exchange tickers are synced yet.");
  else
    showUnknown(
      "exchanges",
      "No quotes are synced of",
      pairs.map((one) => one.pair),
    );
  return found !== undefined;
}
const quotes = poll({
  kind: "quotes",
  what: "the quotes",
  params: () => ({ pair }),
  seconds: POLL_SECONDS,
  show,
  prepare,
});
const spreads = poll({
  kind: "spreads",
  what: "the spreads of the last day",
  params: () => ({ pair }),
  seconds: SPREAD_SECONDS,
  show: showSpreads,
  prepare,
});
rereadOnNews(1, [quotes], ({ ticks, streams }) => streams.includes("exchange_ticks") || ticks.length > 0);
