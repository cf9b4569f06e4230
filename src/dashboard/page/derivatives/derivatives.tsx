import { useLayoutEffect, useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { FutureQuote, OptionQuote } from "../../../model/answers/market.ts";
import type { ViewPart } from "../../api-answers.ts";
import { isNamed, useAddress } from "../shared/address.ts";
import { Field } from "../shared/combobox.tsx";
import { contractColumns, type DataColumn, DataTable, type Row, ViewTable } from "../shared/data-table.tsx";
import { cssColour } from "../shared/layout.tsx";
import { Reading, shownIn, useLivePoll } from "../shared/live.tsx";
import { Card, Choice, mountPage, Sheet, UnknownName } from "../shared/page.tsx";
import { Plot, type PlotDrawing } from "../shared/plot.tsx";
import { amount, brief, count, countNoun, quote, title } from "../shared/text-format.ts";
import { momentText } from "../shared/time-format.ts";

// Futures, perpetuals and options of one asset, as of any moment that was observed.

const MAX_CURVES = 6;

const percentText = (value: number, digits: number) => `${value.toFixed(digits)} %`;
const inPercent = (fraction: number | null | undefined) => (fraction == null ? null : fraction * 100);

const wide = { isWide: true };
const own = { ...contractColumns, price: { label: "Price" }, basis: { isWide: false } };

type ChainLine = { readonly strike: number } & Readonly<Record<"call" | "put", OptionQuote | undefined>>;

/** The options of one expiry by strike; of several with one strike and type the one with the most open interest. */
function buildChain(options: readonly OptionQuote[], expiration: number): ChainLine[] {
  const strikes = Map.groupBy(
    options.filter((one) => one.expiration === expiration),
    ({ strike }) => strike,
  );
  const best = (list: readonly OptionQuote[], type: string) =>
    list
      .filter(({ option_type }) => option_type === type)
      .sort((a, b) => (b.open_interest ?? 0) - (a.open_interest ?? 0))[0];
  return [...strikes].flatMap(([strike, list]) =>
    strike === null ? [] : [{ strike, call: best(list, "CALL"), put: best(list, "PUT") }],
  );
}

function chainColumns(spot: number): readonly DataColumn<ChainLine>[] {
  const sideColumns = (side: "call" | "put", label: string): readonly DataColumn<ChainLine>[] => {
    const tone = (_: string, { strike }: ChainLine) =>
      (side === "call" ? strike < spot : strike > spot) ? "inside" : "";
    return [
      { label, value: (line) => line[side]?.worth, format: quote, tone },
      { label: "Bid", value: (line) => line[side]?.bid, format: quote, tone, ...wide },
      { label: "Ask", value: (line) => line[side]?.ask, format: quote, tone, ...wide },
      {
        ...{ label: "IV", className: `${side}-iv`, tone },
        value: (line) => inPercent(line[side]?.implied_volatility),
        format: (value) => percentText(value, 1),
      },
      {
        ...{ label: "Open interest, contracts", format: amount, ...wide },
        value: (line) => line[side]?.open_interest,
      },
    ];
  };
  const [worth, bid, ask, ...others] = sideColumns("call", "Call");
  const calls = [...others.reverse(), bid, ask, worth].filter((column) => column !== undefined);
  const strike = { label: "Strike", className: "strike", isHeading: true };
  return [...calls, { ...strike, cell: (line) => quote(line.strike) }, ...sideColumns("put", "Put")];
}

/** Those that have a basis to draw. */
const listExchanges = (futures: readonly FutureQuote[]) => [
  ...new Set(futures.flatMap((one) => (one.annualised_basis === null ? [] : one.exchange))),
];

function drawCurve(futures: readonly FutureQuote[], observed: number): PlotDrawing | undefined {
  const points = futures.filter((one) => one.annualised_basis !== null);
  const xs = [...new Set(points.map(({ expiration }) => expiration ?? 0))].sort((a, b) => a - b);
  if (xs.length < 2) return undefined;
  const lines = listExchanges(futures).slice(0, MAX_CURVES);
  const basisOf = (name: string, x: number) =>
    points.find((one) => one.exchange === name && one.expiration === x)?.annualised_basis;
  const days = xs.map((x) => (x - observed) / 86_400e6);
  return {
    data: [days, ...lines.map((name) => xs.map((x) => inPercent(basisOf(name, x))))],
    ...{ xLabel: "days left", yValue: percentText, lines },
    xValues: (value) => count(Math.round(value)),
  };
}

function drawSmile(chain: readonly ChainLine[], interests: readonly number[]): PlotDrawing | undefined {
  const [calls = [], puts = []] = (["call", "put"] as const).map((side) =>
    chain.map(({ [side]: option }) => inPercent(option?.implied_volatility)),
  );
  if (chain.length < 2 || [...calls, ...puts].every((value) => value === null)) return undefined;
  // Out of the money is where options trade: puts below the forward, calls above.
  const isBelow = ({ strike, call, put }: ChainLine) => strike < (call?.forward ?? put?.forward ?? 0);
  const smile = chain.map((line, i) => (isBelow(line) ? puts[i] : calls[i]) ?? null);
  const bars = uPlot.paths.bars?.({ size: [0.6, 28] });
  const dots = { paths: () => null, width: 2 };
  const [call, put] = [cssColour("line-1"), cssColour("line-2")];
  return {
    data: [chain.map(({ strike }) => strike), interests, smile, calls, puts],
    ...{ xLabel: "strike", xValues: brief, yValue: percentText },
    lines: [
      {
        ...{ label: "open interest, contracts", scale: "interest", width: 0, points: { show: false } },
        ...(bars && { paths: bars }),
        fill: cssColour("volume"),
      },
      { label: "smile", stroke: cssColour("soft"), points: { show: false } },
      // A ring and a dot: where both are at one place, both are seen.
      { label: "calls", stroke: call, ...dots, points: { show: true, size: 11, stroke: call, width: 2 } },
      { label: "puts", stroke: put, ...dots, points: { show: true, size: 5, stroke: put, fill: put } },
    ],
    xMargin: ((chain.at(-1)?.strike ?? 0) - (chain[0]?.strike ?? 0)) * 0.04,
    right: { scale: "interest", label: "open interest", value: amount },
  };
}

function Options({ options, expiry }: { options: readonly OptionQuote[]; expiry: number }) {
  const chain = useMemo(() => buildChain(options, expiry), [options, expiry]);
  const spot = options.find(({ index_price }) => (index_price ?? 0) > 0)?.index_price ?? 0;
  const interests = chain.map(({ call, put }) => (call?.open_interest ?? 0) + (put?.open_interest ?? 0));
  const sum = interests.reduce((total, one) => total + one, 0);
  const label = "Implied volatility by strike; the table below has the figures";
  return (
    <>
      <Plot
        {...{ id: "smile-plot", label, "data-interest": sum, of: chain }}
        draw={() => drawSmile(chain, interests)}
      />
      <DataTable
        {...{ id: "chain", label: "Options", rows: chain, empty: "No options were observed." }}
        columns={chainColumns(spot)}
        attributes={({ strike }) => ({ key: String(strike), "data-strike": String(strike) })}
      />
    </>
  );
}

function Contracts({ id, part }: { id: "futures" | "perpetuals"; part: ViewPart }) {
  const attributes = ({ id }: Row) => ({ key: String(id), "data-contract": String(id) });
  const empty = `No ${id} were observed.`;
  return <ViewTable {...{ id, label: title(id), part, own, attributes, empty }} />;
}

function Derivatives() {
  const [view, go] = useAddress("derivatives", { exchange: "", at: "", expiry: "" });
  const assets = useLivePoll("derivative-assets", {}, { what: "the assets", seconds: 60 });
  const known = assets.value?.parts.assets.rows ?? [];
  const asset = view.name
    ? (known.find(({ symbol }) => isNamed(symbol, view.name)) ??
      known.find(({ asset_id }) => asset_id === view.name))
    : known[0];
  const exchanges = asset ? (JSON.parse(asset.exchanges) as string[]).sort() : [];
  const chosen = exchanges.includes(view.exchange) ? view.exchange : "";
  const params = asset && { asset: asset.asset_id, exchange: chosen, at: view.at };
  const contracts = useLivePoll("derivatives", params, {
    ...{ what: "the contracts", seconds: 60, after: assets },
    on: ({ streams }) => view.at === "" && streams.includes("derivative_ticks"),
  });
  // Of several assets with one symbol, the first has it in its address.
  const nameOf = (one: typeof asset) =>
    (known.find(({ symbol }) => symbol === one?.symbol) === one ? one?.symbol : one?.asset_id) ?? "";
  useLayoutEffect(() => {
    if (asset) go({ name: nameOf(asset), exchange: chosen }, "replace");
  }, [asset, view.name]);
  const none = assets.note === "" && !asset && (
    <UnknownName
      {...{ page: "derivatives", name: view.name, what: "derivatives" }}
      known={known.map(({ symbol }) => symbol)}
    />
  );
  const parts = shownIn(contracts)?.parts;
  const futures = parts?.futures.rows ?? [];
  const options = parts?.options.rows ?? [];
  const all = [...futures, ...(parts?.perpetuals.rows ?? []), ...options];
  const observed = all.reduce((newest, { ts }) => Math.max(newest, ts), 0);
  const curves = listExchanges(futures).length;
  const expiries = [...new Set(options.flatMap(({ expiration }) => expiration ?? []))].sort((a, b) => a - b);
  const expiry = expiries.find((one) => String(one) === view.expiry) ?? expiries[0] ?? 0;
  const note =
    all.length === 0
      ? "Nothing was observed within six hours before this moment."
      : `${countNoun(all.length, "contract")}, observed ${momentText(observed)}`;
  return (
    <Sheet
      {...{ name: "asset", title: asset ? `${asset.symbol} derivatives` : "Derivatives", instead: none }}
      note={parts && <span id="derivatives-note">{note}</span>}
    >
      <Card name="selection" label="Selection">
        <form class="controls row" id="controls">
          <Choice
            {...{ id: "asset", label: "Asset", value: asset?.asset_id ?? "" }}
            options={known.map(({ asset_id, symbol }) => [asset_id, symbol])}
            onChoose={(id) => go({ name: nameOf(known.find((one) => one.asset_id === id)), exchange: "" })}
          />
          <Choice
            {...{ id: "exchange", label: "Exchange", value: chosen }}
            options={[["", "all"], ...exchanges.map((name) => [name, name] as const)]}
            onChoose={(name) => go({ exchange: name })}
          />
          <Field id="at" label="As of (UTC), empty for now">
            <input
              {...{ type: "datetime-local", id: "at", step: "1", value: view.at }}
              onChange={({ currentTarget: { value: at } }) => go({ at: at.length === 16 ? `${at}:00` : at })}
            />
          </Field>
          {view.at && <button type="button" id="newest" onClick={() => go({ at: "" })} children="Newest" />}
        </form>
      </Card>
      <Card
        {...{ name: "curve", title: "Term structure of futures", of: [contracts], room: "table" }}
        note={`basis against the index, per year${
          curves > MAX_CURVES ? ` · ${MAX_CURVES} of ${curves} exchanges` : ""
        }`}
      >
        {({ parts }) => [
          <Plot
            key="plot"
            {...{ id: "curve-plot", of: futures, draw: () => drawCurve(futures, observed) }}
            label="Annualised basis by expiry; the table below has the figures"
          />,
          <Contracts key="table" id="futures" part={parts.futures} />,
        ]}
      </Card>
      <Card
        {...{ name: "perpetuals", title: "Perpetuals", of: [contracts], room: "table" }}
        note="the service does not publish the funding period: 8 hours, as most exchanges have it"
      >
        {({ parts }) => <Contracts id="perpetuals" part={parts.perpetuals} />}
      </Card>
      <Card
        {...{ name: "options", title: "Options" }}
        controls={
          expiries.length > 0 && (
            <Choice
              {...{ id: "expiry", label: "Expiry", value: String(expiry) }}
              options={expiries.map((one) => [String(one), new Date(one / 1000).toISOString().slice(0, 10)])}
              onChoose={(one) => go({ expiry: one })}
            />
          )
        }
      >
        <Reading of={[contracts]} room="table">
          {() => <Options options={options} expiry={expiry} />}
        </Reading>
        {options.length > 0 && (
          <p class="soft more">
            Line: out of the money, puts below the forward and calls above. Bars: open interest by strike. The
            implied volatility (IV) is that of the view latest_option_greeks. None is shown where an error of
            0.001 % in the forward would change it by more than a percentage point, as far in the money.
          </p>
        )}
      </Card>
    </Sheet>
  );
}

mountPage(<Derivatives />);
