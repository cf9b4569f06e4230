// One pair on all exchanges, compared with its index.

import type { BestPrices, PairSummary, Quote, QuotesResult } from "../../../model/answers/market.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import { isNamed, nameInPath, onNavigate, saveAddress, showUnknown } from "../shared/address.ts";
import "../shared/layout.ts";
import { onCommit, onMissed, throttle } from "../shared/live.ts";
import { byId, element, setRows, setText, showEmpty } from "../shared/page-base.ts";
import { poll, read, startReading } from "../shared/reading.ts";
import { amount, countNoun, direction, duration, quote } from "../shared/text-format.ts";

const POLL_SECONDS = 30;
let pair = "";
let pairs: readonly PairSummary[] = [];
const pairSelect = byId("pair", HTMLSelectElement);

const unmoved = "price has not moved";

const points = (value: number | null, isSigned = false) => {
  if (value === null) return "–";
  const sign = isSigned && value.toFixed(1) !== "0.0" ? (value > 0 ? "+" : "−") : value < 0 ? "−" : "";
  return `${sign}${Math.abs(value).toFixed(1)} bp`;
};

function deviationBar(deviation: number, largest: number): HTMLElement {
  const bar = element("span", { className: `bar ${direction(deviation)}` });
  const share = largest > 0 ? (Math.abs(deviation) / largest) * 50 : 0;
  bar.style.width = `${share.toFixed(1)}%`;
  bar.style.left = `${(deviation < 0 ? 50 - share : 50).toFixed(1)}%`;
  return element(
    "td",
    { className: "deviation wide", "aria-hidden": "true" },
    element("span", { className: "track" }, bar),
  );
}

function show({ generated_at, best, quotes }: QuotesResult): void {
  const now = Date.parse(generated_at) * 1000;
  const rows = quotes.map((one) => ({ ...one, age: Math.max(0, (now - one.ts) / 1e6) }));
  const largest = rows.reduce((most, { deviation_bps }) => Math.max(most, Math.abs(deviation_bps ?? 0)), 0);
  setText("pair-title", pair);
  document.title = `${pair} · mds-sync`;
  byId("no-quotes").hidden = rows.length > 0;
  setText(
    "quotes-note",
    `${countNoun(rows.filter(({ is_live }) => is_live).length, "live exchange")} · ${generated_at.slice(0, 19).replace("T", " ")} UTC`,
  );
  showFacts(best, rows);
  setRows(
    "quotes",
    rows.map((row) => {
      const remark = row.is_live ? (row.is_stale ? unmoved : "") : "no longer quoted";
      return element(
        "tr",
        { "data-exchange": row.exchange, ...(row.is_live ? {} : { className: "faint" }) },
        element(
          "td",
          {},
          element("b", {}, row.exchange),
          element("span", { className: "soft remark" }, remark ? ` ${remark}` : ""),
        ),
        element("td", { className: "number last" }, quote(row.last)),
        element("td", { className: "number wide" }, quote(row.bid)),
        element("td", { className: "number wide" }, quote(row.ask)),
        element("td", { className: "number spread" }, points(row.spread_bps)),
        element(
          "td",
          { className: `number off ${direction(row.deviation_bps)}` },
          points(row.deviation_bps, true),
        ),
        deviationBar(row.deviation_bps ?? 0, largest),
        element("td", { className: "number wide" }, amount(row.volume)),
        element("td", { className: "number" }, duration(row.age)),
      );
    }),
  );
}

const NO_QUOTES = { best_bid: null, best_bid_exchange: null, best_ask: null, best_ask_exchange: null };

function showFacts(best: BestPrices | null, rows: readonly Quote[]): void {
  const index = rows.reduce<Quote | undefined>(
    (newest, one) => ((one.index_ts ?? 0) > (newest?.index_ts ?? 0) ? one : newest),
    undefined,
  );
  // A price that stands still may only look like the best one.
  const nameOf = (exchange: string | null) => {
    const isStale = rows.some((one) => one.exchange === exchange && one.is_stale);
    return `${exchange ?? ""}${isStale ? `, ${unmoved}` : ""}`;
  };
  const { best_bid, best_bid_exchange, best_ask, best_ask_exchange } = best ?? NO_QUOTES;
  const across =
    best_bid && best_ask && best_bid > 0 && best_ask > 0 ? (best_ask / best_bid - 1) * 10_000 : null;
  const facts = [
    ["Index", index ? quote(index.index_price) : "not synced", index?.index_source ?? ""],
    ["Best bid", quote(best_bid), nameOf(best_bid_exchange)],
    ["Best ask", quote(best_ask), nameOf(best_ask_exchange)],
    ["Across exchanges", points(across, true), "best ask − best bid"],
  ] as const;
  byId("facts").replaceChildren(
    ...facts.map(([label, value, note]) =>
      element(
        "div",
        { className: "fact" },
        element("span", { className: "soft" }, label),
        element("b", {}, value),
        element("span", { className: "soft" }, note),
      ),
    ),
  );
}

/** The pair that the path names; without a name the first. Undefined if it is unknown. */
function pairInPath(): string | undefined {
  const name = nameInPath();
  return name === "" ? pairs[0]?.pair : pairs.find((one) => isNamed(one.pair, name))?.pair;
}

function choose(chosen: string, how: "push" | "replace"): void {
  pair = pairSelect.value = chosen;
  saveAddress(how, pagePath("exchanges", chosen), new URLSearchParams());
}

byId("controls").addEventListener("submit", (event) => event.preventDefault());
pairSelect.addEventListener("change", () => {
  choose(pairSelect.value, "push");
  void quotes.now();
});
onNavigate(() => {
  pair = "";
  void quotes.now();
});

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
      "No exchange quotes the pair",
      pairs.map((one) => one.pair),
    );
  return found !== undefined;
}
const quotes = poll({
  reading: startReading("quotes", "the quotes"),
  kind: "quotes",
  params: () => ({ pair }),
  seconds: POLL_SECONDS,
  show,
  prepare,
});
const reload = throttle(1, () => void quotes.now());
onCommit(({ ticks, grown }) => {
  if (grown("exchange_ticks") || ticks.length > 0) reload();
});
onMissed(reload);
