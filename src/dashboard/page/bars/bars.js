// One series as candles. The URL holds the selection, so that it can be shared.

import { cssColour, watchTheme } from "../shared/layout.js";
import { onCommit, onMissed, throttle } from "../shared/live.js";
import { byId, element, fetchJson, repeatWhileVisible, setText, showEmpty } from "../shared/page-base.js";
import { startReading } from "../shared/reading.js";
import { describeUnknown, seriesBox } from "../shared/series-box.js";
import { count, countNoun, duration, price } from "../shared/text-format.js";
import { timePicker } from "../shared/time-picker.js";
import { barChart } from "./bar-chart.js";
import { buildSlots, listGaps, MAX_BARS, merge, precisionOf, stateOf, widths } from "./bar-slots.js";
import { seriesOverlays } from "./overlays.js";

const TABLE_ROWS = 200;
const GAPS_SHOWN = 12;
const TAIL_BARS = 3;
const POLL_SECONDS = 15;
/** Every so many polls the whole range is read again, because older gaps may have been filled. */
const POLLS_PER_FULL_READ = 30;

const params = new URLSearchParams(location.search);
const view = {
  series: params.has("id")
    ? { index_type: params.get("type"), index_id: params.get("id"), name: "" }
    : undefined,
  width: params.get("width") in widths ? params.get("width") : "1h",
};
/** The daemon's clock minus the browser's clock, in seconds. */
let clockOffset = 0;
let loaded;
let polls = 0;
const reading = startReading("bars", "the bars");
/** The start of the bar under the pointer. */
let pointedAt;
const chart = barChart(byId("chart"), showBar);

const minute = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
const now = () => Date.now() / 1000 + clockOffset;
const picker = timePicker(byId("picker"), { params, now, onChange: () => void reload() });
const selectedRange = picker.range;
byId("log").checked = params.get("log") === "1";
const overlays = seriesOverlays({
  params,
  pathOf: (series) =>
    barsPath(loaded ? { ...selectedRange(), from: oldestShown() } : selectedRange(), series),
  onChange: () => {
    saveToUrl();
    showScale();
  },
  onLoad: (lines) => {
    chart.showOverlays(lines);
    byId("chart").dataset.overlays = lines.filter(({ points }) => points.length > 0).length;
  },
});
const drawStrip = chart.onRangeChange(showStrip);
showScale();

/** The course of several series is comparable only if all begin at 100; that excludes a log scale. */
function showScale() {
  byId("log").disabled = !overlays.isEmpty();
  chart.setScale({ isLog: byId("log").checked, isRebased: !overlays.isEmpty() });
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
function showStrip(edge, width) {
  if (!loaded?.slots) return;
  const canvas = byId("strip");
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const colours = Object.fromEntries(
    Object.entries(stripColours).map(([state, name]) => [state, cssColour(name)]),
  );
  loaded.slots.forEach((slot, i) => {
    const [left, right] = [Math.max(0, edge(i)), Math.min(width, edge(i + 1))];
    if (right <= left) return;
    const state = slot.isComplete
      ? "complete"
      : (slot.span?.state ?? (stateOf(slot) === "missing" ? "open" : "complete"));
    pen.fillStyle = colours[state] ?? colours.none;
    pen.fillRect(left, 0, Math.max(1, right - left), canvas.clientHeight);
  });
}

// ---- selection and requests

function barsIn(width) {
  const { from, to = now() } = selectedRange();
  return (to - from) / widths[width];
}

function barsPath({ from, to }, series = view.series) {
  const toIso = (seconds) => new Date(Math.floor(seconds) * 1000).toISOString();
  const query = new URLSearchParams({
    type: series.index_type,
    id: series.index_id,
    width: view.width,
    from: toIso(from),
    ...(to === undefined ? {} : { to: toIso(to) }),
  });
  return `/api/bars?${query}`;
}

// A range that ends now must move: if it only grew, it would exceed the limit of one request.
function oldestShown() {
  const { from, to } = selectedRange();
  if (to !== undefined) return loaded.from;
  return Math.max(loaded.from, from, now() - (MAX_BARS - 2) * widths[view.width]);
}

const currentView = () => JSON.stringify([view, picker.params()]);

async function refresh() {
  const isTail =
    loaded !== undefined && selectedRange().to === undefined && polls % POLLS_PER_FULL_READ !== 0;
  const request = isTail
    ? barsPath({ from: loaded.to - TAIL_BARS * widths[view.width] })
    : barsPath(loaded ? { ...selectedRange(), from: oldestShown() } : selectedRange());
  const current = currentView();
  const response = await fetchJson(request);
  // The selection has changed while the request was running.
  if (current !== currentView()) return;
  const isNew = loaded === undefined;
  loaded = isTail ? merge(loaded, response) : response;
  polls++;
  reading.answer();
  show(isNew);
}

async function reload() {
  loaded = undefined;
  polls = 0;
  reading.begin();
  updateWidths();
  saveToUrl();
  await bars.now();
}

function saveToUrl() {
  const { series, width } = view;
  const query = new URLSearchParams({
    type: series.index_type,
    id: series.index_id,
    width,
    ...picker.params(),
    ...(byId("log").checked ? { log: "1" } : {}),
  });
  for (const [name, value] of overlays.params()) query.append(name, value);
  history.replaceState(null, "", `/bars?${query}`);
}

function showError(error) {
  if (!(error instanceof UnknownName)) return reading.fail(error);
  reading.answer();
  byId("note").hidden = false;
  setText("note", error.message);
  for (const { index_type, index_id, name } of error.similar) {
    const href = `/bars?${new URLSearchParams({ type: index_type, id: index_id })}`;
    byId("note").append(" ", element("a", { href }, name));
  }
}

// ---- output

function show(isNew) {
  const slots = buildSlots(loaded);
  const precision = precisionOf(loaded.bars);
  const figures = {
    slots,
    precision,
    missing: slots.filter((slot) => stateOf(slot) === "missing").length,
  };
  chart.show({ slots, spans: loaded.spans, width: view.width, precision, isNew });
  Object.assign(loaded, figures);
  view.series.name = loaded.name;
  byId("series").dataset.name = loaded.name;
  if (document.activeElement !== byId("series")) byId("series").value = loaded.name;
  setText("name", loaded.name);
  setText("family", loaded.index_type);
  const last = slots.findLast(({ close }) => close !== undefined && close !== null);
  setText("last", last ? price(last.close.toFixed(precision)) : "");
  document.title = last
    ? `${loaded.name} ${price(last.close.toFixed(precision))}`
    : `${loaded.name} · mds-sync`;
  Object.assign(byId("chart").dataset, {
    series: loaded.index_id,
    width: loaded.width,
    bars: loaded.bars.length,
    missing: figures.missing,
  });
  byId("note").hidden = !loaded.is_cut && loaded.bars.length > 0;
  setText(
    "note",
    loaded.is_cut
      ? `The read took too long: bars before ${minute(loaded.from)} UTC are not shown.`
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
  showGaps();
  showTable();
}

/** Describes the bar under the pointer, else the newest bar. */
function showBar(pointed) {
  pointedAt = pointed?.time;
  if (!loaded?.slots) return;
  const slot = pointed ?? loaded.slots.findLast((one) => stateOf(one) !== "missing") ?? loaded.slots.at(-1);
  if (!slot) return byId("bar-details").replaceChildren();
  const part = (label, value) =>
    element("span", {}, element("i", {}, label), ` ${price(value.toFixed(loaded.precision))}`);
  const when = element("span", { className: "when" }, `${minute(slot.time)} UTC`);
  const state = stateOf(slot);
  const figures =
    state === "missing"
      ? []
      : [
          part("O", slot.open),
          part("H", slot.high),
          part("L", slot.low),
          part("C", slot.close),
          element("span", {}, `${count(slot.ticks)} of ${count(slot.expected)} ticks`),
        ];
  byId("bar-details").replaceChildren(
    when,
    ...figures,
    element("span", { "data-state": state }, describeSlot(slot)),
  );
}

function describeSlot(slot) {
  const reason = slot.span
    ? ` (${slot.span.state === slot.span.reason ? "" : `${slot.span.state}, `}${slot.span.reason})`
    : "";
  const proven = `${percent(slot.coverage)} proven`;
  return {
    complete: "complete",
    settling: slot.coverage > 0 ? `${proven}, the rest awaits confirmation` : "awaits confirmation",
    partial: `${proven}${reason}`,
    missing: `no bar${reason}`,
  }[stateOf(slot)];
}

/** Shows 100 % only for a complete bar. */
function percent(share) {
  return `${share >= 1 ? 100 : Math.min(99, Math.floor(share * 100))} %`;
}

/** Short ranges with seconds; the date of the end is omitted if it equals that of the start. */
function formatRange(from, to) {
  const digits = to - from < 3_600 ? 19 : 16;
  const [first, last] = [from, to].map((seconds) =>
    new Date(seconds * 1000).toISOString().slice(0, digits).replace("T", " "),
  );
  return `${first} → ${first.slice(0, 10) === last.slice(0, 10) ? last.slice(11) : last}`;
}

function showGaps() {
  const gaps = listGaps(loaded.spans).toReversed();
  byId("gaps").hidden = gaps.length === 0;
  byId("no-gaps").hidden = gaps.length > 0;
  setText("no-gaps", describeNoGaps(loaded.spans));
  const total = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const more = gaps.length > GAPS_SHOWN ? `, the newest ${GAPS_SHOWN} are shown` : "";
  setText(
    "gaps-note",
    gaps.length > 0 ? `${countNoun(gaps.length, "range")}, ${duration(total)}${more}` : "",
  );
  byId("gaps").tBodies[0].replaceChildren(
    ...gaps
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
function describeNoGaps(spans) {
  const unselected = spans
    .filter(({ state }) => state === "none")
    .reduce((sum, { from, to }) => sum + to - from, 0);
  if (unselected === 0) return "Nothing is missing.";
  if (loaded.bars.length === 0) return "Nothing of this range is selected.";
  return `Nothing is missing. Not selected: ${duration(unselected)} of this range.`;
}

function showTable() {
  if (!byId("as-table").open) return;
  const figure = (value) => element("td", { className: "number" }, value);
  const digits = (value) =>
    value === undefined || value === null ? "–" : price(value.toFixed(loaded.precision));
  byId("bars").tBodies[0].replaceChildren(
    ...loaded.slots
      .slice(-TABLE_ROWS)
      .toReversed()
      .map((slot) =>
        element(
          "tr",
          { "data-state": stateOf(slot), "data-time": slot.time },
          element("td", {}, minute(slot.time)),
          ...[slot.open, slot.high, slot.low, slot.close].map((value) => figure(digits(value))),
          figure(slot.ticks === undefined ? "–" : `${count(slot.ticks)} / ${count(slot.expected)}`),
          figure(slot.coverage === undefined ? "–" : percent(slot.coverage)),
          element("td", { className: "soft" }, describeSlot(slot)),
        ),
      ),
  );
}

// ---- controls

/** Enables the widths that give at least two bars and no more than one request returns. */
function updateWidths() {
  const isAvailable = (width) => barsIn(width) >= 2 && barsIn(width) <= MAX_BARS - 2;
  if (!isAvailable(view.width)) view.width = Object.keys(widths).find(isAvailable) ?? view.width;
  for (const input of byId("widths").querySelectorAll("input")) {
    input.disabled = !isAvailable(input.value);
    input.parentElement.title = input.disabled
      ? "Not available for this range: too many bars, or fewer than two"
      : "";
    input.checked = input.value === view.width;
  }
}

function fillControls() {
  byId("widths").append(
    ...Object.keys(widths).map((width) =>
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
byId("widths").addEventListener("change", (event) => {
  view.width = event.target.value;
  void reload();
});
byId("as-table").addEventListener("toggle", () => loaded && showTable());
watchTheme(() => {
  chart.applyTheme();
  drawStrip();
  if (loaded) void overlays.load();
});
byId("log").addEventListener("change", () => {
  saveToUrl();
  showScale();
});
seriesBox(byId("series"), byId("series-list"), (series) => {
  view.series = series;
  byId("series").dataset.name = series.name;
  byId("series").blur();
  byId("chart").focus({ preventScroll: true });
  void reload();
});

/** The series with this name, or the best-known one if no name is given. */
async function findSeries(name) {
  const found = await fetchJson(`/api/series?name=${encodeURIComponent(name)}`);
  if (name === "") return found[0];
  const series = found.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!series) throw new UnknownName(name, found);
  return series;
}

class UnknownName extends Error {
  constructor(name, similar) {
    super(describeUnknown(name, similar));
    this.similar = similar;
  }
}

let hasStarted = false;

async function start() {
  if (hasStarted) return refresh();
  if (byId("widths").childElementCount === 0) fillControls();
  const daemon = await fetchJson("/api/daemon");
  clockOffset = (Date.parse(daemon.generated_at) - Date.now()) / 1000;
  const first = await findSeries("");
  showEmpty(first ? "" : "No index ticks are synced yet.");
  if (!first) return reading.answer();
  const name = params.get("name") ?? "";
  view.series ??= name === "" ? first : await findSeries(name);
  hasStarted = true;
  updateWidths();
  saveToUrl();
  await refresh();
}

// Retry the start until there is something to show.
const bars = repeatWhileVisible(POLL_SECONDS, () => (loaded ? refresh() : start()), showError);
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
