// The ranking of all assets, with the last seven days of each.

import type { RankedAsset, RankingResult } from "../../../model/answers/market.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import type { CommitNews, CommittedTick } from "../../../model/answers/ticks.ts";
import type { StatusReport } from "../../../model/status/warehouse-status.ts";
import type { DaemonAnswer } from "../../api-answers.ts";
import { watchTheme } from "../shared/layout.ts";
import { onCommit, rereadOnNews } from "../shared/live.ts";
import { byId, cell, element, setText, showEmpty, soft } from "../shared/page-base.ts";
import { describeProof } from "../shared/proof.ts";
import { poll } from "../shared/reading.ts";
import { createSortableTable } from "../shared/sortable-table.ts";
import {
  amount,
  asOf,
  count,
  direction,
  momentText,
  percentChange,
  quote,
  signOf,
} from "../shared/text-format.ts";
import { showTreemap } from "./treemap.ts";

const SPARK = { width: 110, height: 30, minutes: 168 * 60 };
/** Commits are told by events; this is only for a page that has none. */
const POLL_SECONDS = 60;

let assets: MarketAsset[] = [];
/** The newest tick of each asset's index since the page was opened. */
const newestTicks = new Map<string, CommittedTick>();
let sparklines: RankingResult["sparklines"] = {};
const params = new URLSearchParams(location.search);
const searchInput = byId("search", HTMLInputElement);
searchInput.value = params.get("q") ?? "";
const withoutFirst = byId("without-first", HTMLInputElement);
withoutFirst.checked = params.has("without");
const squareRoot = byId("square-root", HTMLInputElement);
squareRoot.checked = params.get("scale") === "sqrt";

/** Of several assets with one symbol, the best-ranked has it in its address. */
let firstBySymbol: ReadonlyMap<string, string> = new Map();
const hrefOf = ({ id, symbol }: MarketAsset) =>
  pagePath("assets", firstBySymbol.get(symbol) === id ? symbol : id);

type MarketAsset = ReturnType<typeof toAsset>;

function toAsset(asset: RankedAsset) {
  const [id, symbol, name, rank, price, volume, marketCap, change24h, change7d, change30d, ts] = asset;
  return { id, symbol, name, rank, price, volume, marketCap, change24h, change7d, change30d, ts };
}

function sparkline({ id }: MarketAsset): HTMLTableCellElement {
  const line = sparklines[id];
  if (!line) return cell("number soft", "–");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const places = line.flatMap((minute, i) => {
    const level = line[i + 1] ?? 0;
    if (i % 2 === 1) return [];
    const x = (minute / SPARK.minutes) * SPARK.width;
    return [`${x.toFixed(1)},${(SPARK.height - 2 - (level * (SPARK.height - 4)) / 100).toFixed(1)}`];
  });
  path.setAttribute("d", `M${places.join("L")}`);
  const trend = direction((line.at(-1) ?? 0) - (line[1] ?? 0));
  for (const [name, value] of Object.entries({
    viewBox: `0 0 ${SPARK.width} ${SPARK.height}`,
    width: SPARK.width,
    height: SPARK.height,
    class: `sparkline ${trend}`,
    role: "img",
    "aria-label": `${trend || "flat"} over 7 days, ${places.length} prices`,
  }))
    svg.setAttribute(name, String(value));
  svg.append(path);
  return cell("number spark-cell", svg);
}

function row(asset: MarketAsset): HTMLTableRowElement {
  const { id, rank, symbol, name, price, change24h, change7d, change30d, marketCap, volume } = asset;
  const change = (value: number | null, className: string) => {
    const text = percentChange(value);
    return cell(`number ${signOf(text)} ${className}`, text);
  };
  return element(
    "tr",
    { "data-id": id },
    cell("number rank soft", rank === null ? "–" : count(rank)),
    cell("asset", element("a", { href: hrefOf(asset) }, element("b", {}, symbol), soft(` ${name ?? ""}`))),
    cell("number price", quote(price)),
    change(change24h, ""),
    change(change7d, "wide"),
    change(change30d, "wide"),
    cell("number wide", amount(marketCap)),
    cell("number wide", amount(volume)),
    sparkline(asset),
  );
}

const table = createSortableTable<MarketAsset>({
  id: "ranking",
  columns: [
    { label: "#", key: "rank", className: "number rank", value: ({ rank }) => rank, isFirstAscending: true },
    {
      label: "Asset",
      key: "asset",
      className: "asset",
      value: ({ symbol }) => symbol,
      isFirstAscending: true,
    },
    { label: "Price, USD", key: "price", className: "number", value: ({ price }) => price },
    { label: "24 h", key: "24h", className: "number", value: ({ change24h }) => change24h },
    { label: "7 days", key: "7d", className: "number wide", value: ({ change7d }) => change7d },
    { label: "30 days", key: "30d", className: "number wide", value: ({ change30d }) => change30d },
    { label: "Market cap, USD", key: "cap", className: "number wide", value: ({ marketCap }) => marketCap },
    { label: "Volume, 24 h, USD", key: "volume", className: "number wide", value: ({ volume }) => volume },
    { label: "Last 7 days", className: "number" },
  ],
  sortedBy: "rank",
  onSort: saveToUrl,
  rowsPerStep: 100,
  searchedText: ({ symbol, name }) => `${symbol}\n${name ?? ""}`,
  rowOf: row,
});

function drawMap(): void {
  setText("map-size", squareRoot.checked ? "square root of the market cap" : "market cap");
  setText("first-symbol", assets.find(({ marketCap }) => (marketCap ?? 0) > 0)?.symbol ?? "the first");
  if (assets.length > 0)
    showTreemap(byId("treemap"), assets, {
      hrefOf,
      isWithoutFirst: withoutFirst.checked,
      isSquareRoot: squareRoot.checked,
    });
}

function show(answer: RankingResult): void {
  ({ sparklines } = answer);
  assets = answer.assets.map(toAsset);
  for (const asset of assets) asset.price = newestPrice(asset);
  firstBySymbol = new Map(assets.toReversed().map(({ symbol, id }) => [symbol, id]));
  const total = assets.reduce((sum, { marketCap }) => sum + (marketCap ?? 0), 0);
  const newest = assets.reduce((most, { ts }) => Math.max(most, ts), 0);
  const when = newest > 0 ? ` · as of ${momentText(newest, 16)}` : "";
  setText(
    "market-note",
    assets.length > 0 ? `${count(assets.length)} assets · market cap ${amount(total)} USD${when}` : "",
  );
  showEmpty(assets.length > 0 ? "" : "No market caps are synced yet.");
  table.show(assets);
  drawMap();
}

/** The address holds what the page shows. */
function saveToUrl(): void {
  const query = new URLSearchParams({
    ...(searchInput.value.trim() ? { q: searchInput.value.trim() } : {}),
    ...(table.sort() ? { sort: table.sort() } : {}),
    ...(withoutFirst.checked ? { without: "1" } : {}),
    ...(squareRoot.checked ? { scale: "sqrt" } : {}),
  });
  history.replaceState(null, "", query.size > 0 ? `?${query}` : location.pathname);
}

searchInput.addEventListener("input", () => {
  saveToUrl();
  table.search();
});
byId("map-options").addEventListener("change", () => {
  saveToUrl();
  drawMap();
});
watchTheme(drawMap);
new ResizeObserver(drawMap).observe(byId("treemap"));

function newestPrice({ id, ts, price }: MarketAsset): number | null {
  const tick = newestTicks.get(id);
  return tick && tick[2] > ts ? tick[3] : price;
}

/** New prices between two market caps: the index of the asset. */
function applyTicks(ticks: CommitNews["ticks"]): void {
  for (const tick of ticks) {
    const [type, id, ts] = tick;
    if (type === "GWA" && ts > (newestTicks.get(id)?.[2] ?? 0)) newestTicks.set(id, tick);
  }
  for (const asset of assets) {
    const price = newestPrice(asset);
    if (price === asset.price || price === null) continue;
    const shown = byId("ranking").querySelector<HTMLElement>(`tr[data-id="${CSS.escape(asset.id)}"] .price`);
    if (shown) {
      shown.textContent = quote(price);
      shown.classList.remove("moved-up", "moved-down");
      // Reading the width restarts the animation.
      void shown.offsetWidth;
      shown.classList.add(price > (asset.price ?? 0) ? "moved-up" : "moved-down");
    }
    asset.price = price;
  }
}

// ---- the line of proof

const told: { status?: StatusReport; daemon?: DaemonAnswer } = {};

function showProof(): void {
  const { status, daemon } = told;
  if (!status || !daemon) return;
  const hasLost = status.streams.some(({ lost }) => lost > 0);
  byId("proof").dataset.tone = hasLost && daemon.tone === "well" ? "busy" : daemon.tone;
  const proof = `${describeProof(status, daemon.backfill)}${asOf(status.generated_at, daemon.generated_at)}`;
  setText("proof-text", daemon.problem ? daemon.sentence : proof);
}

const pollProof = (kind: keyof typeof told, what: string) =>
  poll({
    ...{ kind, what, seconds: 5 },
    show: (answer) => {
      Object.assign(told, { [kind]: answer });
      showProof();
    },
    onFailure: () => {
      byId("proof").dataset.tone = "ill";
    },
  });
const proofs = [pollProof("status", "the proof"), pollProof("daemon", "the daemon’s state")];

const market = poll({
  kind: "market",
  what: "the market",
  seconds: POLL_SECONDS,
  show,
});
onCommit(({ ticks }) => applyTicks(ticks));
rereadOnNews(5, [market], ({ streams }) => streams.includes("market_caps"));
rereadOnNews(5, proofs);
