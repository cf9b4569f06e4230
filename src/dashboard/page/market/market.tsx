// The ranking of all assets, with the last seven days of each.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { RankingResult, Sparkline } from "../../../model/answers/market.ts";
import type { CommitNews } from "../../../model/answers/ticks.ts";
import { useAddress } from "../shared/address.ts";
import { type DataColumn, DataTable } from "../shared/data-table.tsx";
import { newestTickOf, Reading, useLivePoll, useNewestTick } from "../shared/live.tsx";
import { Card, Checkbox, Dot, EmptyPage, mountPage, SearchField, Sheet, TrendLine } from "../shared/page.tsx";
import { describeProof } from "../shared/proof.ts";
import { amount, count, direction, percentChange, quote, signOf } from "../shared/text-format.ts";
import { asOf, momentText } from "../shared/time-format.ts";
import { type MarketAsset, Treemap, toAssets } from "./treemap.tsx";

const MINUTES_PER_WEEK = 168 * 60;
/** How long a price that has moved is marked. */
const MOVED = { duration: 1_200, easing: "ease-out" };

const shade = (name: string, share: number) => `color-mix(in srgb, var(--${name}) ${share}%, var(--card))`;
/** The colours of the tiles. */
const scale = {
  ...{ width: "150px", padding: "0 6px", borderRadius: "4px", color: "var(--ink)" },
  background: `linear-gradient(90deg, ${shade("down", 54)}, ${shade("soft", 14)}, ${shade("up", 54)})`,
};

function newestPrice({ id, ts, price }: MarketAsset): number | null {
  const tick = newestTickOf(id);
  return tick && tick[2] > ts ? tick[3] : price;
}

/** Only the price that has moved is drawn again. */
function Price({ asset }: { asset: MarketAsset }) {
  useNewestTick(asset.id);
  const shown = useRef<HTMLSpanElement>(null);
  const price = newestPrice(asset);
  const last = useRef(price);
  useLayoutEffect(() => {
    if (price === null || price === last.current) return;
    const background = `var(--${price > (last.current ?? 0) ? "up" : "down"}-pale)`;
    last.current = price;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    shown.current?.parentElement?.animate({ background: [background, "transparent"] }, MOVED);
  }, [price]);
  return <span ref={shown}>{quote(price)}</span>;
}

function PriceLine({ line }: { line: Sparkline | undefined }) {
  if (!line) return <span class="soft">–</span>;
  const points = line.flatMap((minute, i) =>
    i % 2 === 0 ? [[minute / MINUTES_PER_WEEK, line[i + 1] ?? 0] as const] : [],
  );
  const tone = direction((line.at(-1) ?? 0) - (line[1] ?? 0));
  const label = `${tone || "flat"} over 7 days, ${points.length} prices`;
  return <TrendLine {...{ points, label }} range={[0, 100]} tone={tone || "soft"} />;
}

const change = { format: percentChange, tone: signOf, isWide: true };

const columnsOf = (sparklines: RankingResult["sparklines"]): readonly DataColumn<MarketAsset>[] => [
  { label: "#", key: "rank", field: "rank", className: "rank soft wide", isAscending: true, format: count },
  {
    ...{ label: "Asset", key: "asset", field: "symbol", className: "asset", isAscending: true },
    cell: ({ symbol, name, href }) => (
      <a href={href}>
        <b>{symbol}</b>
        <span class="soft wide"> {name}</span>
      </a>
    ),
  },
  {
    ...{ label: "Price, USD", key: "price", className: "price", format: quote },
    value: newestPrice,
    cell: (asset) => <Price asset={asset} />,
  },
  { label: "24 h", key: "24h", field: "change24h", ...change, isWide: false },
  { label: "7 days", key: "7d", field: "change7d", ...change },
  { label: "30 days", key: "30d", field: "change30d", ...change },
  { label: "Market cap, USD", key: "cap", field: "marketCap", format: amount, isWide: true },
  { label: "Volume, 24 h, USD", key: "volume", field: "volume", format: amount, isWide: true },
  { ...{ label: "Last 7 days", className: "number" }, cell: ({ id }) => <PriceLine line={sparklines[id]} /> },
];

/** What is stored and proven, in one line that leads to the ledger. */
function Proof() {
  const status = useLivePoll("status", {}, { what: "the proof", seconds: 5 });
  const daemon = useLivePoll("daemon", {}, { what: "the daemon’s state", seconds: 5 });
  const hasLost = status.value?.streams.some(({ lost }) => lost > 0);
  const tone = daemon.value?.tone ?? "busy";
  const shown = status.hasFailed || daemon.hasFailed ? "ill" : hasLost && tone === "well" ? "busy" : tone;
  return (
    <p>
      <a id="proof" href="/sync" data-tone={shown}>
        <Dot tone={shown} />
        <span id="proof-text">
          <Reading of={[status, daemon]}>
            {(status, daemon) =>
              daemon.problem
                ? daemon.sentence
                : describeProof(status, daemon.backfill) + asOf(status.generated_at, daemon.generated_at)
            }
          </Reading>
        </span>
      </a>
    </p>
  );
}

function describeMarket(assets: readonly MarketAsset[]): string {
  const total = assets.reduce((sum, { marketCap }) => sum + (marketCap ?? 0), 0);
  const newest = assets.reduce((most, { ts }) => Math.max(most, ts), 0);
  const when = newest > 0 ? ` · as of ${momentText(newest, 16)}` : "";
  return `${count(assets.length)} assets · market cap ${amount(total)} USD${when}`;
}

function Market() {
  const [view, go] = useAddress(undefined, { q: "", sort: "rank", without: "", scale: "" });
  // Commits arrive as events; the interval is only for a page that has none.
  const on = ({ streams }: CommitNews) => streams.includes("market_caps");
  const market = useLivePoll("market", {}, { what: "the market", seconds: 60, on });
  const assets = useMemo(() => toAssets(market.value?.assets ?? []), [market.value]);
  const empty = <EmptyPage key="empty" text="No market caps are synced yet." />;
  const none = market.note === "" && assets.length === 0 && [<Proof key="proof" />, empty];
  const search = (q: string) => go({ q }, "replace");
  const isSquareRoot = view.scale === "sqrt";
  const first = assets.find(({ marketCap }) => (marketCap ?? 0) > 0)?.symbol ?? "the first";
  const options = (
    <form class="row" id="map-options">
      <Checkbox
        {...{ id: "without-first", label: `without ${first}`, value: view.without !== "" }}
        onChoose={(isChecked) => go({ without: isChecked ? "1" : "" }, "replace")}
      />
      <Checkbox
        {...{ id: "square-root", label: "square root", value: isSquareRoot }}
        onChoose={(isChecked) => go({ scale: isChecked ? "sqrt" : "" }, "replace")}
      />
      <span class="soft">size: {isSquareRoot && "square root of the "}market cap · 24 h:</span>
      <span class="row spread small" role="img" aria-label="from −8 % or less to +8 % or more" style={scale}>
        <span>−8 %</span>
        <span>0</span>
        <span>+8 %</span>
      </span>
    </form>
  );
  return (
    <Sheet
      {...{ name: "market", title: "Market", instead: none }}
      note={market.note === "" && assets.length > 0 && describeMarket(assets)}
    >
      <Proof />
      <Card name="map" title="By market capitalisation" controls={options}>
        <div id="treemap">
          <Reading of={[market]} room="line">
            {() => <Treemap {...{ assets, isSquareRoot, isWithoutFirst: view.without !== "" }} />}
          </Reading>
        </div>
      </Card>
      <Card
        {...{ name: "ranking", title: "Ranking", of: [market], room: "page" }}
        controls={<SearchField label="Search by symbol or name" value={view.q} onChoose={search} />}
      >
        {({ sparklines }) => (
          <DataTable
            {...{ id: "ranking", label: "Ranking", rows: assets, step: 100 }}
            columns={columnsOf(sparklines)}
            attributes={({ id }) => ({ key: id, "data-id": id })}
            sort={{ by: view.sort, onSort: (sort) => go({ sort }, "replace") }}
            search={{
              text: view.q,
              of: ({ symbol, name }) => `${symbol}\n${name ?? ""}`,
              none: "No asset has this name.",
            }}
          />
        )}
      </Card>
    </Sheet>
  );
}

mountPage(<Market />);
