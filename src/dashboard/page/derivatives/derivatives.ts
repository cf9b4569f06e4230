// Futures, perpetuals and options of one asset, as of any moment that was observed.

import uPlot from "uplot";
import type {
  ContractQuote,
  DerivativeAsset,
  DerivativesResult,
  FutureQuote,
  OptionQuote,
  PerpetualQuote,
} from "../../../model/answers/derivatives.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import { DAYS_PER_YEAR } from "../../../model/time.ts";
import { isNamed, nameInPath, onNavigate, saveAddress, showUnknown } from "../shared/address.ts";
import { cssColour, withOpacity } from "../shared/layout.ts";
import { rereadOnNews } from "../shared/live.ts";
import { byId, element, setRows, setText, showEmpty } from "../shared/page-base.ts";
import { drawPlot, plotOptions } from "../shared/plot.tsx";
import { poll, read, startReading } from "../shared/reading.ts";
import {
  amount,
  brief,
  count,
  countNoun,
  momentText,
  percentChange,
  quote,
  signOf,
} from "../shared/text-format.ts";

const POLL_SECONDS = 60;
const MAX_CURVES = 6;
const FUNDINGS_PER_YEAR = 3 * DAYS_PER_YEAR;
const view = {
  /** The id of an asset; empty until the assets are known. */
  asset: "",
  exchange: "",
  /** `YYYY-MM-DDTHH:MM:SS`, empty for now. */
  at: "",
  expiry: 0,
};
let assets: readonly DerivativeAsset[] = [];
let loaded: DerivativesResult | undefined;
const assetSelect = byId("asset", HTMLSelectElement);
const exchangeSelect = byId("exchange", HTMLSelectElement);
const expirySelect = byId("expiry", HTMLSelectElement);
const atInput = byId("at", HTMLInputElement);

const contractParams = () => ({
  asset: view.asset,
  ...(view.exchange ? { exchange: view.exchange } : {}),
  ...(view.at ? { at: view.at } : {}),
});

const iso = (micros: number) => new Date(micros / 1000).toISOString();
const cell = (text: string, className = "") => element("td", { className: `number ${className}` }, text);
/** In the colour of its sign. */
const signedCell = (text: string, className = "") => cell(text, `${className} ${signOf(text)}`);
const percentOf = (fraction: number | null, digits?: number) =>
  percentChange(fraction === null ? null : fraction * 100, digits);
/** A phone has no column for the exchange. */
const contractCell = ({ id, name, exchange }: ContractQuote) =>
  element("td", {}, name ?? id, element("span", { className: "soft narrow" }, exchange));

/** A strike with its call and its put. */
interface ChainLine {
  readonly strike: number;
  readonly call: OptionQuote | undefined;
  readonly put: OptionQuote | undefined;
}

/** The options of one expiry by strike; of several with one strike and type the one with the most open interest. */
function buildChain(options: readonly OptionQuote[], expiration: number): ChainLine[] {
  const byStrike = Map.groupBy(
    options.filter((one) => one.expiration === expiration),
    ({ strike }) => strike,
  );
  const best = (list: readonly OptionQuote[], type: string) =>
    list
      .filter(({ option_type }) => option_type === type)
      .sort((a, b) => (b.open_interest ?? 0) - (a.open_interest ?? 0))[0];
  return [...byStrike].flatMap(([strike, list]) =>
    strike === null ? [] : [{ strike, call: best(list, "CALL"), put: best(list, "PUT") }],
  );
}

// ---- charts

const percentText = (value: number, digits: number) => `${value.toFixed(digits)} %`;
const inPercent = (fraction: number | null | undefined) => (fraction == null ? null : fraction * 100);

function drawCurve(futures: readonly FutureQuote[], observed: number): void {
  const points = futures.flatMap(({ exchange, expiration, annualised_basis: basis }) =>
    expiration === null || basis === null ? [] : [{ exchange, expiration, basis }],
  );
  drawPlot("curve-plot", (target) => {
    const xs = [...new Set(points.map(({ expiration }) => expiration))].sort((a, b) => a - b);
    if (xs.length < 2) return undefined;
    const all = [...new Set(points.map(({ exchange }) => exchange))];
    const exchanges = all.slice(0, MAX_CURVES);
    setText("curve-note", all.length > MAX_CURVES ? ` · ${MAX_CURVES} of ${all.length} exchanges` : "");
    const lines = exchanges.map((name) =>
      xs.map((x) => inPercent(points.find((one) => one.exchange === name && one.expiration === x)?.basis)),
    );
    return new uPlot(
      plotOptions(target, {
        xLabel: "days left",
        xValues: (value) => count(Math.round(value)),
        yValue: percentText,
        lines: exchanges,
      }),
      [xs.map((x) => (x - observed) / 86_400e6), ...lines],
      target,
    );
  });
}

function drawSmile(chain: readonly ChainLine[]): void {
  const interest = chain.map(({ call, put }) => (call?.open_interest ?? 0) + (put?.open_interest ?? 0));
  byId("smile-plot").dataset.interest = String(interest.reduce((sum, one) => sum + one, 0));
  drawPlot("smile-plot", (target) => {
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
    return new uPlot(
      plotOptions(target, {
        xLabel: "strike",
        xValues: (value) => brief(value),
        yValue: percentText,
        lines: [
          {
            ...{ label: "open interest, contracts", scale: "interest", width: 0, points: { show: false } },
            ...(bars && { paths: bars }),
            fill: withOpacity(cssColour("soft"), 0.22),
          },
          { label: "smile", stroke: cssColour("soft"), points: { show: false } },
          // A ring and a dot: where both are at one place, both are seen.
          { label: "calls", stroke: call, ...dots, points: { show: true, size: 11, stroke: call, width: 2 } },
          { label: "puts", stroke: put, ...dots, points: { show: true, size: 5, stroke: put, fill: put } },
        ],
        right: { scale: "interest", label: "open interest", value: amount },
      }),
      [chain.map(({ strike }) => strike), interest, smile, calls, puts],
      target,
    );
  });
}

// ---- tables

function fill(id: string, rows: readonly HTMLTableRowElement[]): void {
  setRows(id, rows);
  byId(id).hidden = rows.length === 0;
}

function showFutures({ futures, observed }: DerivativesResult): void {
  fill(
    "futures",
    futures.map((one) =>
      element(
        "tr",
        { "data-contract": one.id },
        contractCell(one),
        element("td", { className: "wide faint" }, one.exchange),
        cell(one.days_to_expiry === null ? "–" : count(Math.round(one.days_to_expiry))),
        cell(quote(one.price), "wide"),
        cell(quote(one.index_price), "wide"),
        signedCell(percentOf(one.basis)),
        signedCell(percentOf(one.annualised_basis), "per-year"),
        cell(amount(one.open_interest_usd), "wide"),
      ),
    ),
  );
  byId("no-futures").hidden = futures.length > 0;
  drawCurve(futures, observed ?? 0);
}

/** Without compounding: three payments a day. */
const annualFunding = ({ funding_rate }: PerpetualQuote) =>
  funding_rate === null ? null : funding_rate * FUNDINGS_PER_YEAR;

function showPerpetuals(perpetuals: readonly PerpetualQuote[]): void {
  fill(
    "perpetuals",
    perpetuals.map((one) =>
      element(
        "tr",
        { "data-contract": one.id },
        contractCell(one),
        element("td", { className: "wide faint" }, one.exchange),
        cell(quote(one.price), "wide"),
        cell(quote(one.index_price), "wide"),
        signedCell(percentOf(one.premium, 3), "wide"),
        signedCell(percentOf(one.funding_rate, 4), "funding"),
        signedCell(percentOf(annualFunding(one)), "per-year"),
        cell(amount(one.open_interest_usd), "wide"),
      ),
    ),
  );
  byId("no-perpetuals").hidden = perpetuals.length > 0;
}

function showOptions(all: readonly OptionQuote[]): void {
  const expiries = [...new Set(all.flatMap(({ expiration }) => expiration ?? []))].sort((a, b) => a - b);
  if (!expiries.includes(view.expiry)) view.expiry = expiries[0] ?? 0;
  expirySelect.replaceChildren(
    ...expiries.map((expiry) => element("option", { value: expiry }, iso(expiry).slice(0, 10))),
  );
  expirySelect.value = String(view.expiry);
  if (expirySelect.parentElement) expirySelect.parentElement.hidden = expiries.length === 0;
  const chain = buildChain(all, view.expiry);
  const spot = all.find(({ index_price }) => (index_price ?? 0) > 0)?.index_price ?? 0;
  const vol = (one: OptionQuote | undefined) => {
    const value = inPercent(one?.implied_volatility);
    return value === null ? "–" : `${value.toFixed(1)} %`;
  };
  fill(
    "chain",
    chain.map(({ strike, call, put }) =>
      element(
        "tr",
        { "data-strike": strike },
        cell(amount(call?.open_interest), "wide"),
        cell(vol(call), `call-iv${strike < spot ? " inside" : ""}`),
        cell(quote(call?.bid), `wide${strike < spot ? " inside" : ""}`),
        cell(quote(call?.ask), `wide${strike < spot ? " inside" : ""}`),
        cell(quote(call?.worth), strike < spot ? "inside" : ""),
        element("th", { className: "strike", scope: "row" }, quote(strike)),
        cell(quote(put?.worth), strike > spot ? "inside" : ""),
        cell(quote(put?.bid), `wide${strike > spot ? " inside" : ""}`),
        cell(quote(put?.ask), `wide${strike > spot ? " inside" : ""}`),
        cell(vol(put), `put-iv${strike > spot ? " inside" : ""}`),
        cell(amount(put?.open_interest), "wide"),
      ),
    ),
  );
  byId("no-options").hidden = all.length > 0;
  byId("iv-note").hidden = all.length === 0;
  drawSmile(chain);
}

function show(answer: DerivativesResult): void {
  loaded = answer;
  const { futures, perpetuals, options: chain, observed } = answer;
  const symbol = selectedAsset()?.symbol;
  setText("asset-title", symbol ? `${symbol} derivatives` : "Derivatives");
  document.title = `${symbol ?? ""} derivatives · mds-sync`;
  setText(
    "derivatives-note",
    observed === null
      ? "Nothing was observed within six hours before this moment."
      : `${countNoun(futures.length + perpetuals.length + chain.length, "contract")}, observed ${momentText(observed)}`,
  );
  showFutures(answer);
  showPerpetuals(perpetuals);
  showOptions(chain);
}

// ---- controls

const selectedAsset = () => assets.find(({ asset_id }) => asset_id === view.asset);

function saveToUrl(how: "push" | "replace"): void {
  const asset = selectedAsset();
  if (!asset) return;
  const { exchange, at, expiry } = view;
  const query = Object.entries({ exchange, at, expiry })
    .filter(([, value]) => value)
    .map(([name, value]) => [name, String(value)]);
  // Of several assets with one symbol, the first has it in its address.
  const isFirst = assets.find(({ symbol }) => symbol === asset.symbol) === asset;
  const path = pagePath("derivatives", isFirst ? asset.symbol : asset.asset_id);
  saveAddress(how, path, new URLSearchParams(query));
}

/** The asset and the options of the address; without a name the first asset. */
function readFromUrl(): void {
  const name = nameInPath();
  const params = new URLSearchParams(location.search);
  const asset =
    name === ""
      ? assets[0]
      : (assets.find(({ symbol }) => isNamed(symbol, name)) ??
        assets.find(({ asset_id }) => asset_id === name));
  Object.assign(view, {
    asset: asset?.asset_id ?? "",
    exchange: params.get("exchange") ?? "",
    at: params.get("at") ?? "",
    expiry: Number(params.get("expiry")) || 0,
  });
  fillControls();
}

function fillControls(): void {
  const asset = selectedAsset();
  assetSelect.replaceChildren(
    ...assets.map(({ asset_id, symbol }) => element("option", { value: asset_id }, symbol)),
  );
  assetSelect.value = view.asset;
  const exchanges = asset ? (JSON.parse(asset.exchanges) as string[]).sort() : [];
  if (!exchanges.includes(view.exchange)) view.exchange = "";
  exchangeSelect.replaceChildren(
    element("option", { value: "" }, "all"),
    ...exchanges.map((name) => element("option", { value: name }, name)),
  );
  exchangeSelect.value = view.exchange;
  atInput.value = view.at;
  byId("newest").hidden = view.at === "";
}

byId("controls").addEventListener("change", () => {
  const at = atInput.value;
  Object.assign(view, {
    asset: assetSelect.value,
    exchange: exchangeSelect.value,
    at: at.length === 16 ? `${at}:00` : at,
  });
  fillControls();
  saveToUrl("push");
  void contracts.now();
});
byId("newest").addEventListener("click", () => {
  view.at = "";
  fillControls();
  saveToUrl("push");
  void contracts.now();
});
expirySelect.addEventListener("change", () => {
  view.expiry = Number(expirySelect.value);
  saveToUrl("push");
  if (loaded) showOptions(loaded.options);
});
const assetsReading = startReading("assets", "the assets");
/** Assets first: without one there is nothing to ask for. */
async function prepare(): Promise<boolean> {
  if (assets.length === 0) {
    assets = await read(assetsReading, "derivative-assets");
    readFromUrl();
  }
  if (view.asset !== "") {
    showEmpty("");
    saveToUrl("replace");
  } else if (assets.length === 0) showEmpty("No derivatives are synced yet.");
  else
    showUnknown(
      "derivatives",
      "No derivatives are synced of",
      assets.map(({ symbol }) => symbol),
    );
  return view.asset !== "";
}
onNavigate(() => {
  readFromUrl();
  void contracts.now();
});
const contracts = poll({
  kind: "derivatives",
  name: "contracts",
  what: "the contracts",
  params: contractParams,
  seconds: POLL_SECONDS,
  show,
  prepare,
});
rereadOnNews(5, [contracts], ({ streams }) => view.at === "" && streams.includes("derivative_ticks"));
