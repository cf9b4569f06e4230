// One series as candles. The URL holds the selection, so that it can be shared.

import { type ChartBarsResult, type ChartRange, MAX_BARS } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { type BarWidth, barWidths } from "../../../model/time.ts";
import { cssColour, watchTheme } from "../shared/layout.ts";
import { onCommit, onMissed, throttle } from "../shared/live.ts";
import {
  byId,
  element,
  fetchJson,
  repeatWhileVisible,
  setRows,
  setText,
  showEmpty,
} from "../shared/page-base.ts";
import { startReading } from "../shared/reading.ts";
import { describeUnknown, seriesBox } from "../shared/series-box.ts";
import { count, countNoun, duration, price } from "../shared/text-format.ts";
import { type PickedRange, timePicker } from "../shared/time-picker.ts";
import { barChart } from "./bar-chart.ts";
import { buildSlots, listGaps, merge, precisionOf, type Slot, secondsOf, stateOf } from "./bar-slots.ts";
import { seriesOverlays } from "./overlays.ts";

const TABLE_ROWS = 200;
const GAPS_SHOWN = 12;
const TAIL_BARS = 3;
const POLL_SECONDS = 15;
/** Every so many polls the whole range is read again, because older gaps may have been filled. */
const POLLS_PER_FULL_READ = 30;

const params = new URLSearchParams(location.search);
const widths = Object.keys(barWidths).filter(isWidth);
const view: { series: SeriesMatch | undefined; width: BarWidth } = {
  series: params.has("id")
    ? { index_type: params.get("type") ?? "", index_id: params.get("id") ?? "", name: "" }
    : undefined,
  width: widths.find((width) => width === params.get("width")) ?? "1h",
};
/** What was read last, and what is shown of it. */
interface Loaded extends ChartBarsResult {
  readonly slots: readonly Slot[];
  readonly precision: number;
}
/** The daemon's clock minus the browser's clock, in seconds. */
let clockOffset = 0;
let loaded: Loaded | undefined;
let polls = 0;
const reading = startReading("bars", "the bars");
/** The start of the bar under the pointer. */
let pointedAt: number | undefined;
const chart = barChart(byId("chart"), showBar);

const minute = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
const now = () => Date.now() / 1000 + clockOffset;
const picker = timePicker(byId("picker"), { params, now, onChange: () => void reload() });
const selectedRange = picker.range;
const [logInput, seriesInput] = [byId("log", HTMLInputElement), byId("series", HTMLInputElement)];
logInput.checked = params.get("log") === "1";
const overlays = seriesOverlays({
  params,
  fetchBars: (series) => fetchBars(shownRange(), series),
  onChange: () => {
    saveToUrl();
    showScale();
  },
  onLoad: (lines) => {
    chart.showOverlays(lines);
    const drawn = lines.filter(({ points }) => points.length > 0);
    byId("chart").dataset.overlays = String(drawn.length);
  },
});
const drawStrip = chart.onRangeChange(showStrip);
showScale();

/** The course of several series is comparable only if all begin at 100; that excludes a log scale. */
function showScale(): void {
  logInput.disabled = !overlays.isEmpty();
  chart.setScale({ isLog: logInput.checked, isRebased: !overlays.isEmpty() });
}

const stripColours = {
  complete: "covered",
  settling: "settling",
  open: "open",
  lost: "lost",
  empty: "none",
  none: "none",
};

/** Under the chart, a strip that shows which part of it is proven. */
function showStrip(edge: (slot: number) => number, width: number): void {
  const canvas = byId("strip", HTMLCanvasElement);
  const pen = canvas.getContext("2d");
  if (!loaded || !pen) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  canvas.height = Math.round(canvas.clientHeight * ratio);
  pen.scale(ratio, ratio);
  const colours = new Map(Object.entries(stripColours).map(([state, name]) => [state, cssColour(name)]));
  loaded.slots.forEach((slot, i) => {
    const [left, right] = [Math.max(0, edge(i)), Math.min(width, edge(i + 1))];
    if (right <= left) return;
    const state = slot.isComplete
      ? "complete"
      : (slot.span?.state ?? (stateOf(slot) === "missing" ? "open" : "complete"));
    pen.fillStyle = colours.get(state) ?? "";
    pen.fillRect(left, 0, Math.max(1, right - left), canvas.clientHeight);
  });
}

// ---- selection and requests

function isWidth(text: string): text is BarWidth {
  return Object.hasOwn(barWidths, text);
}

function barsIn(width: BarWidth): number {
  const { from, to = now() } = selectedRange();
  return (to - from) / secondsOf(width);
}

function fetchBars({ from, to }: PickedRange, series: SeriesMatch): Promise<ChartBarsResult> {
  const toIso = (seconds: number) => new Date(Math.floor(seconds) * 1000).toISOString();
  return fetchJson("bars", {
    type: series.index_type,
    id: series.index_id,
    width: view.width,
    from: toIso(from),
    ...(to === undefined ? {} : { to: toIso(to) }),
  });
}

// A range that ends now must move: if it only grew, it would exceed the limit of one request.
function shownRange(): PickedRange {
  const range = selectedRange();
  if (!loaded) return range;
  if (range.to !== undefined) return { ...range, from: loaded.from };
  return { from: Math.max(loaded.from, range.from, now() - (MAX_BARS - 2) * secondsOf(view.width)) };
}

const currentView = () => JSON.stringify([view, picker.params()]);

async function refresh(series: SeriesMatch): Promise<void> {
  const isTail = selectedRange().to === undefined && polls % POLLS_PER_FULL_READ !== 0;
  const known = isTail ? loaded : undefined;
  const range = known ? { from: known.to - TAIL_BARS * secondsOf(view.width) } : shownRange();
  const current = currentView();
  const response = await fetchBars(range, series);
  // The selection has changed while the request was running.
  if (current !== currentView()) return;
  const isNew = loaded === undefined;
  const merged = known ? merge<ChartBarsResult>(loaded ?? known, response) : response;
  loaded = { ...merged, slots: buildSlots(merged), precision: precisionOf(merged.bars) };
  polls++;
  reading.answer();
  show(loaded, isNew);
}

async function reload(): Promise<void> {
  loaded = undefined;
  polls = 0;
  reading.begin();
  updateWidths();
  saveToUrl();
  await bars.now();
}

function saveToUrl(): void {
  const { series, width } = view;
  if (!series) return;
  const query = new URLSearchParams({
    type: series.index_type,
    id: series.index_id,
    width,
    ...picker.params(),
    ...(logInput.checked ? { log: "1" } : {}),
  });
  for (const key of overlays.params()) query.append("with", key);
  history.replaceState(null, "", `/bars?${query}`);
}

function showError(error: unknown): void {
  if (!(error instanceof UnknownName)) return void reading.fail(error);
  reading.answer();
  byId("note").hidden = false;
  setText("note", error.message);
  for (const { index_type, index_id, name } of error.similar) {
    const href = `/bars?${new URLSearchParams({ type: index_type, id: index_id })}`;
    byId("note").append(" ", element("a", { href }, name));
  }
}

// ---- output

function show(shown: Loaded, isNew: boolean): void {
  const { slots, precision, name, bars, spans } = shown;
  chart.show({ slots, spans, width: view.width, precision, isNew });
  if (view.series) view.series = { ...view.series, name };
  seriesInput.dataset.name = name;
  if (document.activeElement !== seriesInput) seriesInput.value = name;
  setText("name", name);
  setText("family", shown.index_type);
  const last = slots.findLast(({ candle }) => candle)?.candle;
  const lastPrice = last ? price(last.close.toFixed(precision)) : "";
  setText("last", lastPrice);
  document.title = last ? `${name} ${lastPrice}` : `${name} · mds-sync`;
  Object.assign(byId("chart").dataset, {
    series: shown.index_id,
    width: shown.width,
    bars: bars.length,
    missing: slots.filter((slot) => stateOf(slot) === "missing").length,
  });
  byId("note").hidden = !shown.is_cut && bars.length > 0;
  setText(
    "note",
    shown.is_cut
      ? `The read took too long: bars before ${minute(shown.from)} UTC are not shown.`
      : "No bars in this range.",
  );
  showBar(slots.find(({ time }) => time === pointedAt));
  drawStrip();
  const complete = slots.filter((slot) => slot.isComplete).length;
  byId("strip").setAttribute(
    "aria-label",
    `Coverage: ${count(complete)} of ${count(slots.length)} bars are complete`,
  );
  if (isNew || polls % POLLS_PER_FULL_READ === 0) void overlays.load();
  showGaps(shown);
  showTable();
}

/** Describes the bar under the pointer, else the newest bar. */
function showBar(pointed: Slot | undefined): void {
  pointedAt = pointed?.time;
  if (!loaded) return;
  const { slots, precision } = loaded;
  const slot = pointed ?? slots.findLast(({ candle }) => candle) ?? slots.at(-1);
  if (!slot) return void byId("bar-details").replaceChildren();
  const part = (label: string, value: number) =>
    element("span", {}, element("i", {}, label), ` ${price(value.toFixed(precision))}`);
  const when = element("span", { className: "when" }, `${minute(slot.time)} UTC`);
  const { candle, ticks = 0, expected = 0 } = slot;
  const figures = candle
    ? [
        part("O", candle.open),
        part("H", candle.high),
        part("L", candle.low),
        part("C", candle.close),
        element("span", {}, `${count(ticks)} of ${count(expected)} ticks`),
      ]
    : [];
  byId("bar-details").replaceChildren(
    when,
    ...figures,
    element("span", { "data-state": stateOf(slot) }, describeSlot(slot)),
  );
}

function describeSlot(slot: Slot): string {
  const { span, coverage = 0 } = slot;
  const reason = span ? ` (${span.state === span.reason ? "" : `${span.state}, `}${span.reason})` : "";
  const proven = `${percent(coverage)} proven`;
  return {
    complete: "complete",
    settling: coverage > 0 ? `${proven}, the rest awaits confirmation` : "awaits confirmation",
    partial: `${proven}${reason}`,
    missing: `no bar${reason}`,
  }[stateOf(slot)];
}

/** Shows 100 % only for a complete bar. */
function percent(share: number): string {
  return `${share >= 1 ? 100 : Math.min(99, Math.floor(share * 100))} %`;
}

/** Short ranges with seconds; the date of the end is omitted if it equals that of the start. */
function formatRange(from: number, to: number): string {
  const digits = to - from < 3_600 ? 19 : 16;
  const text = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, digits).replace("T", " ");
  const [first, last] = [text(from), text(to)];
  return `${first} → ${first.slice(0, 10) === last.slice(0, 10) ? last.slice(11) : last}`;
}

function showGaps({ spans, bars }: Loaded): void {
  const gaps = listGaps(spans).toReversed();
  byId("gaps").hidden = gaps.length === 0;
  byId("no-gaps").hidden = gaps.length > 0;
  setText("no-gaps", describeNoGaps(spans, bars.length > 0));
  const total = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const more = gaps.length > GAPS_SHOWN ? `, the newest ${GAPS_SHOWN} are shown` : "";
  setText(
    "gaps-note",
    gaps.length > 0 ? `${countNoun(gaps.length, "range")}, ${duration(total)}${more}` : "",
  );
  setRows(
    "gaps",
    gaps
      .slice(0, GAPS_SHOWN)
      .map(({ from, to, state, reason }) =>
        element(
          "tr",
          { "data-state": state },
          element(
            "td",
            {},
            element("i", { className: "mark", "data-state": state }),
            state,
            element("span", { className: "soft" }, ` ${reason}`),
          ),
          element("td", { className: "number" }, duration(to - from)),
          element("td", { className: "faint" }, formatRange(from, to)),
        ),
      ),
  );
}

/** What was never selected is not proven either. */
function describeNoGaps(spans: readonly ChartRange[], hasBars: boolean): string {
  const unselected = spans
    .filter(({ state }) => state === "none")
    .reduce((sum, { from, to }) => sum + to - from, 0);
  if (unselected === 0) return "Nothing is missing.";
  if (!hasBars) return "Nothing of this range is selected.";
  return `Nothing is missing. Not selected: ${duration(unselected)} of this range.`;
}

function showTable(): void {
  if (!loaded || !byId("as-table", HTMLDetailsElement).open) return;
  const { slots, precision } = loaded;
  const figure = (value: string) => element("td", { className: "number" }, value);
  const digits = (value: number | undefined) => (value === undefined ? "–" : price(value.toFixed(precision)));
  setRows(
    "bars",
    slots
      .slice(-TABLE_ROWS)
      .toReversed()
      .map((slot) =>
        element(
          "tr",
          { "data-state": stateOf(slot), "data-time": slot.time },
          element("td", {}, minute(slot.time)),
          ...(["open", "high", "low", "close"] as const).map((part) => figure(digits(slot.candle?.[part]))),
          figure(slot.ticks === undefined ? "–" : `${count(slot.ticks)} / ${count(slot.expected ?? 0)}`),
          figure(slot.coverage === undefined ? "–" : percent(slot.coverage)),
          element("td", { className: "soft" }, describeSlot(slot)),
        ),
      ),
  );
}

// ---- controls

/** Enables the widths that give at least two bars and no more than one request returns. */
function updateWidths(): void {
  const isAvailable = (width: BarWidth) => barsIn(width) >= 2 && barsIn(width) <= MAX_BARS - 2;
  if (!isAvailable(view.width)) view.width = widths.find(isAvailable) ?? view.width;
  for (const input of byId("widths").querySelectorAll("input")) {
    input.disabled = !(isWidth(input.value) && isAvailable(input.value));
    const note = "Not available for this range: too many bars, or fewer than two";
    if (input.parentElement) input.parentElement.title = input.disabled ? note : "";
    input.checked = input.value === view.width;
  }
}

function fillControls(): void {
  byId("widths").append(
    ...widths.map((width) =>
      element(
        "label",
        {},
        element("input", { type: "radio", name: "width", value: width }),
        element("span", {}, width),
      ),
    ),
  );
}

byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("widths").addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLInputElement && isWidth(target.value))) return;
  view.width = target.value;
  void reload();
});
byId("as-table").addEventListener("toggle", showTable);
watchTheme(() => {
  chart.applyTheme();
  drawStrip();
  if (loaded) void overlays.load();
});
logInput.addEventListener("change", () => {
  saveToUrl();
  showScale();
});
seriesBox(seriesInput, byId("series-list"), (series) => {
  view.series = series;
  seriesInput.dataset.name = series.name;
  seriesInput.blur();
  byId("chart").focus({ preventScroll: true });
  void reload();
});

async function findSeries(name: string): Promise<SeriesMatch> {
  const found = await fetchJson("series", { name });
  const series = found.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!series) throw new UnknownName(name, found);
  return series;
}

class UnknownName extends Error {
  readonly similar: readonly SeriesMatch[];

  constructor(name: string, similar: readonly SeriesMatch[]) {
    super(describeUnknown(name, similar));
    this.similar = similar;
  }
}

let hasStarted = false;

async function start(): Promise<void> {
  if (hasStarted && view.series) return refresh(view.series);
  if (byId("widths").childElementCount === 0) fillControls();
  const daemon = await fetchJson("daemon");
  clockOffset = (Date.parse(daemon.generated_at) - Date.now()) / 1000;
  // Without a name, the best-known series is the first.
  const [first] = await fetchJson("series", { name: "" });
  showEmpty(first ? "" : "No index ticks are synced yet.");
  if (!first) return reading.answer();
  const name = params.get("name") ?? "";
  view.series ??= name === "" ? first : await findSeries(name);
  hasStarted = true;
  updateWidths();
  saveToUrl();
  await refresh(view.series);
}

// Retry the start until there is something to show.
const bars = repeatWhileVisible(POLL_SECONDS, start, showError);
const readTail = throttle(1, () => void bars.now());
onCommit(({ ticks }) => {
  const { index_type, index_id } = view.series ?? {};
  if (ticks.some(([type, id]) => type === index_type && id === index_id)) readTail();
});
onMissed(() => {
  // The next read is that of the whole range.
  polls = 0;
  readTail();
});
