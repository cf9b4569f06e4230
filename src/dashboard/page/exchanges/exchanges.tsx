// One pair on all exchanges, compared with its index.

import { useLayoutEffect } from "preact/hooks";
import type { BestPrices, Quote, SpreadPoint } from "../../../model/answers/market.ts";
import { isNamed, useAddress } from "../shared/address.ts";
import { Field } from "../shared/combobox.tsx";
import { type DataColumn, DataTable } from "../shared/data-table.tsx";
import { Reading, shownIn, useLivePoll } from "../shared/live.tsx";
import { Card, Choice, Facts, mountPage, SearchField, Sheet, UnknownName } from "../shared/page.tsx";
import { useRedraws } from "../shared/page-base.ts";
import { Plot } from "../shared/plot.tsx";
import { amount, basisPoints, countNoun, direction, quote, signOf } from "../shared/text-format.ts";
import { duration, momentText } from "../shared/time-format.ts";

/** The scale of deviations: a dead exchange is hundreds of points away, and the others are not one pixel. */
const SCALE_BPS = 20;
/** Below it each moment is marked: a line between few of them looks like knowledge. */
const MAX_MARKED_POINTS = 60;
const MAX_EDGE_EXCHANGES = 12;
const MAX_EDGE_EXCHANGES_ON_PHONE = 4;

const signedPoints = (bps: number) => basisPoints(bps, true);

const isTradable = ({ is_live, is_still }: Quote) => is_live === 1 && is_still === 0;

/** The bar from the middle; what is beyond the scale ends in an arrow. */
function DeviationBar({ bps }: { bps: number }) {
  const width = (Math.min(SCALE_BPS, Math.abs(bps)) / SCALE_BPS) * 50;
  const arrow = bps < 0 ? "M0,4L4,0V8Z" : "M100,4L96,0V8Z";
  const isClipped = Math.abs(bps) > SCALE_BPS;
  return (
    <svg
      {...{ class: `bar ${direction(bps)}`, viewBox: "0 0 100 8", preserveAspectRatio: "none" }}
      fill="currentcolor"
      style="display: block; width: 100%; height: 8px; border-radius: 4px; background: var(--none)"
      aria-hidden="true"
    >
      <rect x={bps < 0 ? 50 - width : 50} width={width} height="8" fill-opacity={isClipped ? 0.6 : 1} />
      {isClipped && <path d={arrow} />}
      <rect x="49.7" width="0.6" height="8" fill="var(--soft)" />
    </svg>
  );
}

const remarkOf = ({ is_live, is_still }: Quote) =>
  !is_live ? "no longer quoted" : is_still ? "not moved for an hour" : "";

/** `now`: the moment of the answer, in microseconds. */
const columnsAt = (now: number): readonly DataColumn<Quote>[] => [
  {
    ...{ label: "Exchange", key: "exchange", isAscending: true },
    value: (row) => row.exchange.toLowerCase(),
    cell: (row) => (
      <>
        <b>{row.exchange}</b>
        <span class="soft wraps"> {remarkOf(row)}</span>
      </>
    ),
  },
  { label: "Last", key: "last", field: "last", format: quote },
  { label: "Bid", key: "bid", field: "bid", format: quote, isWide: true },
  { label: "Ask", key: "ask", field: "ask", format: quote, isWide: true, isAscending: true },
  { label: "Spread", key: "spread", field: "spread_bps", format: basisPoints, isAscending: true },
  {
    ...{ label: "vs index", key: "deviation", field: "deviation_bps", className: "off" },
    format: signedPoints,
    tone: (text, row) => (isTradable(row) ? signOf(text) : ""),
  },
  {
    ...{ label: `−${SCALE_BPS} bp to +${SCALE_BPS} bp`, className: "deviation", isWide: true },
    cell: (row) => isTradable(row) && row.deviation_bps !== null && <DeviationBar bps={row.deviation_bps} />,
  },
  { label: "Volume, 24 h, USD", key: "volume", field: "volume_usd", format: amount, isWide: true },
  { label: "Age", key: "age", value: ({ ts }) => (now - ts) / 1e6, format: duration, isAscending: true },
];

function describeQuotes(quotes: readonly Quote[], time: string): string {
  const still = quotes.filter(({ is_live, is_still }) => is_live && is_still).length;
  const unmoved = still > 0 ? `, ${still} without a move` : "";
  const live = countNoun(quotes.filter(isTradable).length, "live exchange");
  return `${live}${unmoved} · ${momentText(Date.parse(time) * 1000)}`;
}

function listFacts(best: BestPrices | undefined, quotes: readonly Quote[]) {
  const [index] = quotes
    .filter(({ index_ts }) => (index_ts ?? 0) > 0)
    .sort((a, b) => (b.index_ts ?? 0) - (a.index_ts ?? 0));
  const [bid, ask] = [best?.best_bid ?? null, best?.best_ask ?? null];
  // A quote that stands still only looks like the best one.
  const note = (exchange: string | null = "", own: number | null, any: number | null = null) =>
    `${exchange ?? ""}${any !== own ? `; ${quote(any)} including stale quotes` : ""}`;
  const across = bid && ask && bid > 0 && ask > 0 ? (ask / bid - 1) * 10_000 : null;
  return [
    { label: "Index", figure: index ? quote(index.index_price) : "not synced", note: index?.index_source },
    { label: "Best bid", figure: quote(bid), note: note(best?.best_bid_exchange, bid, best?.best_bid_any) },
    { label: "Best ask", figure: quote(ask), note: note(best?.best_ask_exchange, ask, best?.best_ask_any) },
    {
      ...{ label: "Across exchanges", note: "best ask − best bid" },
      figure: across === null ? "–" : signedPoints(across),
    },
  ];
}

/** Green if it shows a gain: what rounds to nothing is none. */
function edgeColour(edge: number, text: string): string {
  const strength = Math.min(1, Math.abs(edge) / SCALE_BPS);
  const [colour, share] = text.startsWith("+") ? ["up", 15 + 35 * strength] : ["down", 16 * strength];
  return `color-mix(in srgb, var(--${colour}) ${share.toFixed(1)}%, transparent)`;
}

/** What buying at the ask of the row and selling at the bid of the column leaves, in basis points, before fees. */
function sellAt(sell: Quote): DataColumn<Quote> {
  const edgeOf = (buy: Quote) => (sell === buy ? null : ((sell.bid ?? 0) / (buy.ask ?? 1) - 1) * 10_000);
  return {
    label: sell.exchange,
    value: edgeOf,
    format: (edge) => signedPoints(edge).replace(" bp", ""),
    cell: (_, text) => (text.startsWith("+") ? <b>{text}</b> : text),
    shade: (buy, text) => edgeColour(edgeOf(buy) ?? 0, text),
  };
}

function Edges({ quotes }: { quotes: readonly Quote[] }) {
  // Again for each width of the window.
  useRedraws();
  const isPhone = matchMedia("(max-width: 760px)").matches;
  const limit = isPhone ? MAX_EDGE_EXCHANGES_ON_PHONE : MAX_EDGE_EXCHANGES;
  const traded = quotes.filter((one) => isTradable(one) && (one.bid ?? 0) > 0 && (one.ask ?? 0) > 0);
  const shown = traded.slice(0, limit);
  if (shown.length < 2) return null;
  const title = "Executable edge, bp";
  const note = traded.length > shown.length ? `the ${shown.length} with the most volume` : "";
  return (
    <Card name="edges" title={title} note={note}>
      <DataTable
        {...{ id: "edges", label: title, rows: shown }}
        columns={[{ label: "buy at ↓ sell at →", field: "exchange", isHeading: true }, ...shown.map(sellAt)]}
      />
    </Card>
  );
}

function Spreads({ spreads }: { spreads: readonly SpreadPoint[] }) {
  if (spreads.length < 2) return <p class="soft empty">Not enough quotes in the last 24 hours.</p>;
  return (
    <Plot
      {...{ id: "spread-plot", "data-points": spreads.length, of: spreads }}
      label="Best ask over best bid in basis points, last 24 hours"
      draw={(points) => ({
        data: [points.map(({ ts }) => ts / 1e6), points.map(({ bps }) => bps)],
        ...{ xLabel: "time", isTime: true, lines: ["ask over bid"] },
        xValues: (seconds) => momentText(seconds * 1e6, 16),
        yValue: (value, digits) => `${value.toFixed(digits)} bp`,
        hasPoints: points.length < MAX_MARKED_POINTS,
      })}
    />
  );
}

function Exchanges() {
  const [view, go] = useAddress("exchanges", { q: "", sort: "-volume" });
  const pairs = useLivePoll("pairs", {}, { what: "the pairs", seconds: 60 });
  const known = pairs.value?.parts.pairs.rows ?? [];
  const pair = (view.name ? known.find((one) => isNamed(one.pair, view.name)) : known[0])?.pair;
  const quotes = useLivePoll("quotes", pair ? { pair } : undefined, {
    ...{ what: "the quotes", seconds: 30, throttleSeconds: 1, after: pairs },
    on: ({ ticks, streams }) => streams.includes("exchange_ticks") || ticks.length > 0,
  });
  const spreads = useLivePoll("spreads", pair ? { pair } : undefined, {
    ...{ what: "the spreads of the last day", seconds: 60, after: pairs },
  });
  // Before anybody can choose another one.
  useLayoutEffect(() => {
    if (pair) go({ name: pair }, "replace");
  }, [pair, view.name]);
  const none = pairs.note === "" && !pair && (
    <UnknownName
      {...{ page: "exchanges", name: view.name, known: known.map((one) => one.pair), what: "quotes" }}
    />
  );
  const answer = shownIn(quotes);
  const rows = answer?.parts.quotes.rows ?? [];
  return (
    <Sheet
      {...{ name: "pair", title: pair ?? "Exchanges", instead: none }}
      note={answer && <span id="quotes-note">{describeQuotes(rows, answer.generated_at)}</span>}
    >
      <Card name="quotes" label="Quotes">
        <form class="controls row" id="controls">
          <Choice
            {...{ id: "pair", label: "Pair", value: pair ?? "" }}
            options={known.map((one) => [one.pair, `${one.pair} (${one.exchanges})`])}
            onChoose={(name) => go({ name })}
          />
          <Field id="search" label="Exchange">
            <SearchField label="Search" value={view.q} onChoose={(q) => go({ q }, "replace")} />
          </Field>
          <Reading of={[quotes]} isQuiet room="figure">
            {({ parts }) => <Facts id="facts" of={listFacts(parts.best.rows[0], rows)} />}
          </Reading>
        </form>
        <Reading of={[quotes]} room="table">
          {({ generated_at }) => (
            <DataTable
              {...{ id: "quotes", label: "Quotes", rows, step: 25, empty: "No exchange quotes this pair." }}
              columns={columnsAt(Date.parse(generated_at) * 1000)}
              attributes={(row) => ({
                ...{ key: row.exchange, "data-exchange": row.exchange },
                class: isTradable(row) ? undefined : "faint",
              })}
              sort={{
                ...{ by: view.sort, isLast: (row: Quote) => !isTradable(row) },
                onSort: (sort) => go({ sort }, "replace"),
              }}
              search={{ text: view.q, of: (row) => row.exchange, none: "No exchange has this name." }}
            />
          )}
        </Reading>
      </Card>
      <Card
        {...{ name: "spreads", title: "Spread across exchanges, last 24 hours", of: [spreads], room: "plot" }}
        note="below 0: buying on one and selling on the other makes money before fees"
      >
        {({ parts }) => <Spreads spreads={parts.spreads.rows} />}
      </Card>
      <Edges quotes={rows} />
      <p class="soft">
        1 bp = 0.01 %. “vs index” is the deviation of the last price from the index, drawn up to 20 bp. A
        quote that has not changed for an hour is stale: it is last, and never the best.
      </p>
    </Sheet>
  );
}

mountPage(<Exchanges />);
