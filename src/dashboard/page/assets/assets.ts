// Everything that the warehouse knows about one asset. Each figure is a link to the SQL that made it.

import uPlot from "uplot";
import type {
  AssetResult,
  AssetSection,
  AssetSectionKey,
  AssetValue,
  UnknownAsset,
} from "../../../model/answers/asset.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import type { CommittedTick } from "../../../model/answers/ticks.ts";
import { nameInPath, showUnknownName } from "../shared/address.ts";
import { cssColour } from "../shared/layout.ts";
import { onCommit, rereadOnNews } from "../shared/live.ts";
import { byId, cell, element, fact, setText, showEmpty } from "../shared/page-base.ts";
import { drawPlot, plotOptions } from "../shared/plot.tsx";
import { poll } from "../shared/reading.ts";
import {
  amount,
  count,
  duration,
  minuteOf,
  momentText,
  percentChange,
  quote,
  signOf,
  title,
  zoneName,
} from "../shared/text-format.ts";

const POLL_SECONDS = 30;
const name = nameInPath();
let assetId = "";
let sections: ReadonlyMap<AssetSectionKey, AssetSection> = new Map();
/** Of the asset's index, since the page was opened. */
let newestTick: CommittedTick | undefined;

type Format = (value: number) => string;
const percent: Format = (value) => percentChange(value);
const percentOfShare: Format = (value) => percentChange(value * 100, Math.abs(value) < 0.001 ? 4 : 2);

/** By column: its label, and how its figure is told. */
const columns: Readonly<Record<string, readonly [label: string, format?: Format, isSigned?: boolean]>> = {
  rank: ["Rank", count],
  price: ["Price, USD", quote],
  price_change_24h: ["24 h", percent, true],
  price_change_7d: ["7 days", percent, true],
  price_change_30d: ["30 days", percent, true],
  market_cap: ["Market cap, USD", amount],
  volume_usd: ["Volume, 24 h, USD", amount],
  is_settled: ["Proven"],
  age_seconds: ["Age", duration],
  seconds: ["Length", duration],
  close: ["From ticks", quote],
  service_close: ["Daily bar", quote],
  largest_rel_diff: [
    "Largest difference, OHLC",
    (value) => `${(value * 100).toFixed(value < 0.001 ? 4 : 2)} %`,
  ],
  coverage: ["Covered", (value) => `${Math.floor(value * 100)} %`],
  last: ["Last", quote],
  index_price: ["Index", quote],
  deviation_bps: [
    "vs index",
    (value) => `${value > 0.05 ? "+" : value < -0.05 ? "−" : ""}${Math.abs(value).toFixed(1)} bp`,
    true,
  ],
  days_to_expiry: ["Days left", (value) => count(Math.round(value))],
  basis: ["Basis", percentOfShare, true],
  annualised_basis: ["Per year", percentOfShare, true],
  premium: ["From the index", percentOfShare, true],
  funding_rate: ["Funding, per 8 h", (value) => percentChange(value * 100, 4), true],
  funding_per_year: ["Per year", percentOfShare, true],
};

const parts: readonly (readonly [key: AssetSectionKey, heading: string, empty: string])[] = [
  ["exchanges", "On exchanges, by volume", "No quotes in USD are synced."],
  ["perpetuals", "Perpetuals", "No perpetuals are synced."],
  ["daily", "Daily bars against ticks", "No day has both."],
  ["futures", "Curve of futures", "No futures are synced."],
  ["coverage", "Proof", "Nothing is covered."],
  ["gaps", "Gaps", "Nothing is missing but what awaits confirmation."],
  ["revisions", "Revisions", "No stored row has changed."],
];
/** The columns that a phone has no room for. */
const wide = new Set([
  "reason",
  "volume_usd",
  "age_seconds",
  "premium",
  "price",
  "basis",
  "seconds",
  "coverage",
]);
/** The columns of words, which may take two lines. */
const wrapping = new Set(["reason", "quality"]);
/** The columns that a person does not need beside the others. */
const hidden = new Set(["index_price", "is_complete", "before"]);

const exploreLink = (sql: string) => `/explore#${new URLSearchParams({ sql })}`;

const isTime = (column: string) => /_time$|^time$|_at$/.test(column);
/** `from_time` → From (UTC) */
const labelOf = (column: string) =>
  columns[column]?.[0] ??
  (isTime(column) ? `${title(column.replace(/_time$/, ""))} (${zoneName()})` : title(column));

function figure(column: string, value: AssetValue, sql: string): HTMLElement {
  const format = columns[column]?.[1];
  const text =
    typeof value === "number" && format
      ? format(value)
      : column === "stream"
        ? title(String(value))
        : isTime(column)
          ? minuteOf(value === null ? null : String(value))
          : String(value ?? "–");
  return typeof value === "number"
    ? element("a", { href: exploreLink(sql) }, text)
    : element("span", {}, text);
}

const toneOf = (column: string, shown: HTMLElement) =>
  columns[column]?.[2] ? signOf(shown.textContent ?? "") : "";

function showPart({ sql, rows }: AssetSection, heading: string, empty: string): HTMLElement {
  const names = Object.keys(rows[0] ?? {}).filter(
    (column) => !hidden.has(column) && rows.some((row) => row[column] !== null),
  );
  const classOf = (column: string) => {
    const kind = columns[column]?.[1]
      ? "number"
      : column === "after"
        ? "json"
        : isTime(column) || wrapping.has(column)
          ? "wraps"
          : "";
    return `${kind} ${wide.has(column) ? "wide" : ""}`;
  };
  const head = names.map((column) =>
    element("th", { scope: "col", className: classOf(column) }, labelOf(column)),
  );
  const body = rows.map((row) =>
    element(
      "tr",
      {},
      ...names.map((column) => {
        const shown = figure(column, row[column] ?? null, sql);
        return cell(`${classOf(column)} ${toneOf(column, shown)}`, shown);
      }),
    ),
  );
  const scroll = element(
    "div",
    { className: "scroll", tabindex: 0, role: "region", "aria-label": `${heading}, as a table` },
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)),
  );
  return element(
    "section",
    { className: "card", "aria-label": heading },
    element(
      "div",
      { className: "card-head" },
      element("h2", {}, heading),
      element("a", { className: "soft", href: exploreLink(sql) }, "SQL"),
    ),
    rows.length > 0 ? scroll : element("p", { className: "soft empty" }, empty),
  );
}

function showFacts(): void {
  const [market, index] = [sections.get("market"), sections.get("index")];
  const stored = index?.rows[0];
  const [, , ts = 0, price = 0] = newestTick ?? [];
  const isNewer = stored && ts / 1000 > Date.parse(String(stored.time));
  const age = Math.max(0, (Date.now() - ts / 1000) / 1000);
  const tick = isNewer ? { price, is_settled: 0, age_seconds: age } : stored;
  // The newest price first: that of the index, else that of the ranking.
  const facts = [
    ...(tick && index ? [["price", tick.price ?? null, index.sql] as const] : []),
    ...Object.entries(market?.rows[0] ?? {})
      .filter(([column]) => column !== "time" && !(tick && column === "price"))
      .map(([column, value]) => [column, value, market?.sql ?? ""] as const),
  ];
  const proof = tick
    ? `${tick.is_settled === 1 ? "proven" : "awaiting confirmation"}, ${duration(Number(tick.age_seconds))} old`
    : "";
  byId("facts").replaceChildren(
    ...facts.map(([column, value, sql]) => {
      const shown = figure(column, value, sql);
      const label = labelOf(column);
      const tone = toneOf(column, shown);
      return fact(label, element("b", { className: tone }, shown), column === "price" ? proof : "", column);
    }),
  );
}

/** The closes whose hour is covered in full, and the others, with their neighbours: a line has no hole where its colour changes. */
function drawPrices(rows: AssetSection["rows"]): void {
  byId("price-plot").dataset.points = String(rows.length);
  drawPlot("price-plot", (target) => {
    if (rows.length < 2) return undefined;
    const closes = (isComplete: number) =>
      rows.map(({ close, is_complete }, i) =>
        is_complete === isComplete ||
        (isComplete === 0 && [rows[i - 1], rows[i + 1]].some((beside) => beside?.is_complete === 0))
          ? (close as number | null)
          : null,
      );
    return new uPlot(
      plotOptions(target, {
        xLabel: "hour",
        xValues: (seconds) => momentText(seconds * 1e6, 16),
        yValue: (value) => (value >= 1_000 ? count(Math.round(value)) : quote(value)),
        lines: [
          { label: "proven", stroke: cssColour("covered") },
          { label: "not proven yet", stroke: cssColour("open") },
        ],
        hasPoints: false,
        isTime: true,
      }),
      [rows.map(({ ts }) => Number(ts) / 1e6), closes(1), closes(0)],
      target,
    );
  });
}

function show(answer: AssetResult | UnknownAsset): void {
  if ("near" in answer) {
    const near = answer.near.map((symbol) => ({ label: symbol, href: pagePath("assets", symbol) }));
    showUnknownName(`No synced asset is named “${name}”.`, near);
    return;
  }
  showEmpty("");
  const { symbol } = answer;
  assetId = answer.asset_id;
  sections = new Map(answer.sections.map((section) => [section.key, section]));
  document.title = `${symbol} · mds-sync`;
  setText("asset-title", symbol);
  setText("asset-name", answer.name ?? "");
  byId("to-bars", HTMLAnchorElement).href = pagePath("bars", symbol);
  byId("to-exchanges", HTMLAnchorElement).href = pagePath("exchanges", `${symbol}/USD`);
  byId("to-derivatives", HTMLAnchorElement).href = pagePath("derivatives", symbol);
  showFacts();
  drawPrices(sections.get("hours")?.rows ?? []);
  byId("parts").replaceChildren(
    ...parts.flatMap(([key, heading, empty]) => {
      const section = sections.get(key);
      // Without a proof and without a gap there is no target.
      const isUnselected = key === "gaps" && sections.get("coverage")?.rows.length === 0;
      return section ? [showPart(section, heading, isUnselected ? "Nothing is selected." : empty)] : [];
    }),
  );
}

const asset = poll({
  kind: "asset",
  what: "the asset",
  params: () => ({ name }),
  seconds: POLL_SECONDS,
  show,
});
onCommit(({ ticks }) => {
  const own = ticks.findLast(([type, id]) => type === "GWA" && id === assetId);
  if (!own || own[2] <= (newestTick?.[2] ?? 0)) return;
  newestTick = own;
  showFacts();
});
rereadOnNews(10, [asset]);
