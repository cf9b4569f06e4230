// One series as candles. The address holds the selection, so that it can be shared; Back and Forward go through it.

import { MAX_BARS, type SecondsRange } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import type { CommitNews } from "../../../model/answers/ticks.ts";
import { type BarWidth, barWidths, MICROS_PER_SECOND } from "../../../model/time.ts";
import { nameInPath, onNavigate, saveAddress, showUnknownName } from "../shared/address.ts";
import { watchTheme } from "../shared/layout.ts";
import { onCommit, onMissed, throttle } from "../shared/live.ts";
import {
  byId,
  describeError,
  element,
  fetchJson,
  repeatWhileVisible,
  setText,
  showEmpty,
} from "../shared/page-base.ts";
import { startReading } from "../shared/reading.ts";
import { isTyping } from "../shared/search-dialog.ts";
import { describeUnknown, seriesBox } from "../shared/series-box.ts";
import { price } from "../shared/text-format.ts";
import { type PickedRange, timePicker, toMinute } from "../shared/time-picker.ts";
import { barChart } from "./bar-chart.ts";
import { BarFeed } from "./bar-feed.ts";
import { type ShownBars, showBar, showGaps, showTable } from "./bar-report.ts";
import { buildSlots, precisionOf, secondsOf, stateOf, timeAt } from "./bar-slots.ts";
import { fetchBars } from "./fetch-bars.ts";
import { seriesOverlays } from "./overlays.ts";

const POLL_SECONDS = 15;
/** A tick moves the last bar at once; what a page of history has changed is read this often at most. */
const CHANGED_SECONDS = 5;
/** So many bars before the end of what is loaded, more is loaded. */
const LOAD_AHEAD_BARS = 50;
const VIEW_REST_MS = 300;
/** A width that gives fewer bars than the least, or too many, shows the usual number. */
const MIN_BARS = 30;
const DEFAULT_BARS = 300;

const widths = Object.keys(barWidths).filter(isWidth);
let width: BarWidth = "1h";
let series: SeriesMatch | undefined;
let feed: BarFeed | undefined;
let shown: ShownBars | undefined;
let inView: SecondsRange = { from: 0, to: 0 };
/** Where the next read begins, if a commit changed more than the end. */
let changedFrom = Number.POSITIVE_INFINITY;
/** The daemon's clock minus the browser's clock, in seconds. */
let clockOffset = 0;
/** The start of the bar under the pointer. */
let pointedAt: number | undefined;
let viewTimer: number | undefined;
/** The keys of a width that is being typed. */
let typedWidth = "";

const now = () => Date.now() / 1000 + clockOffset;
const reading = startReading("bars", "the bars");
const [logInput, seriesInput] = [byId("log", HTMLInputElement), byId("series", HTMLInputElement)];
const chart = barChart(byId("chart"), {
  onPoint: (slot) => {
    pointedAt = slot?.time;
    if (shown) showBar(shown, slot);
  },
  onView: followView,
});
const picker = timePicker(byId("picker"), {
  params: new URLSearchParams(location.search),
  now,
  onChange: setRange,
});
const overlays = seriesOverlays({
  onChange: () => {
    saveToUrl("push");
    showScale();
  },
  onLoad: (lines) => {
    chart.showOverlays(lines);
    byId("chart").dataset.overlays = String(lines.filter(({ points }) => points.length > 0).length);
  },
});

/** The course of several series is comparable only if all begin at 100; that excludes a log scale. */
function showScale(): void {
  logInput.disabled = !overlays.isEmpty();
  chart.setScale({ isLog: logInput.checked, isRebased: !overlays.isEmpty() });
}

// ---- the address

function isWidth(text: string): text is BarWidth {
  return Object.hasOwn(barWidths, text);
}

function addressOf(range: Readonly<Record<string, string>>): [path: string, query: URLSearchParams] {
  const query = new URLSearchParams({ width, ...range, ...(logInput.checked ? { log: "1" } : {}) });
  for (const slug of overlays.slugs()) query.append("with", slug);
  return [pagePath("bars", series?.slug ?? nameInPath()), query];
}

function saveToUrl(how: "push" | "replace"): void {
  if (series) saveAddress(how, ...addressOf(picker.params()));
}

/** Takes everything but the series from the address. */
function readFromUrl(): void {
  const params = new URLSearchParams(location.search);
  width = widths.find((one) => one === params.get("width")) ?? "1h";
  logInput.checked = params.get("log") === "1";
  picker.setParams(params);
  overlays.setSlugs(params.getAll("with"));
  showScale();
}

/** Undefined if the path has an unknown name, which the page then says. */
async function findSeries(name: string): Promise<SeriesMatch | undefined> {
  const found = await fetchJson("series", { name });
  const [first] = found;
  // Without a name, the best-known series is the first.
  if (first && (name === "" || first.match === "exact")) {
    showEmpty("");
    return first;
  }
  if (name === "") showEmpty("No index ticks or daily bars are synced yet.");
  else
    showUnknownName(
      describeUnknown(name, []),
      found.map((one) => ({ label: one.name, href: pagePath("bars", one.slug) })),
    );
  return undefined;
}

// ---- what is loaded

function begin(): void {
  clearTimeout(viewTimer);
  shown = undefined;
  feed = undefined;
  changedFrom = Number.POSITIVE_INFINITY;
  reading.begin();
}

/** A person chose a series, a width or a range. */
async function choose(): Promise<void> {
  begin();
  showWidths();
  saveToUrl("push");
  await bars.now();
}

async function start(): Promise<void> {
  if (byId("widths").childElementCount === 0) fillControls();
  if (clockOffset === 0) {
    const daemon = await fetchJson("daemon");
    clockOffset = (Date.parse(daemon.generated_at) - Date.now()) / 1000;
  }
  const name = nameInPath();
  const found = series ?? (await findSeries(name));
  // Someone has gone elsewhere meanwhile.
  if (name !== nameInPath()) return;
  series = found;
  if (!series) return reading.answer();
  showWidths();
  saveToUrl("replace");
  const own = new BarFeed({ series, width, now, read: fetchBars });
  feed = own;
  const range = picker.range();
  await own.start(range);
  if (feed === own) show(own, { view: range });
}

async function refresh(): Promise<void> {
  const own = feed;
  if (!own?.loaded || own.isOutdated) return start();
  const { isLive } = own;
  const from = changedFrom;
  changedFrom = Number.POSITIVE_INFINITY;
  await own.refresh(from);
  if (feed === own) show(own, { isLive });
}

/** Loads more where a reader comes near an end; once the view rests, the address and the gaps follow it. */
function followView(from: number, to: number, isByHand: boolean): void {
  if (!feed || !shown) return;
  if (from < LOAD_AHEAD_BARS) void extend(feed, () => feed?.loadOlder());
  if (to > shown.slots.length - LOAD_AHEAD_BARS) void extend(feed, () => feed?.loadNewer());
  clearTimeout(viewTimer);
  viewTimer = setTimeout(() => {
    if (!feed || !shown) return;
    setInView({ from: timeAt(shown.slots, from), to: timeAt(shown.slots, to + 1) });
    showGaps(shown, inView, hrefOfGap);
    if (!isByHand) return;
    // A view that reaches the last bar has no end: it follows.
    const isAtEnd = feed.isLive && to >= shown.slots.length - 1;
    picker.setRange(isAtEnd ? { from: inView.from } : inView);
    saveToUrl("replace");
  }, VIEW_REST_MS);
}

function setInView(range: SecondsRange): void {
  inView = range;
  byId("chart").dataset.view = new Date(range.from * 1000).toISOString();
}

async function extend(own: BarFeed, load: () => Promise<boolean> | undefined): Promise<void> {
  try {
    if ((await load()) && feed === own) show(own);
  } catch (error) {
    // What is loaded stays; the next scroll tries again.
    byId("note").hidden = false;
    setText("note", `Could not load more bars: ${describeError(error)}.`);
  }
}

// ---- output

interface ShowOptions {
  /** The range to bring into view. */
  readonly view?: PickedRange;
  /** What is new at the end was committed just now. */
  readonly isLive?: boolean;
}

function show(own: BarFeed, { view, isLive = false }: ShowOptions = {}): void {
  const { loaded } = own;
  if (!loaded) return;
  shown = { ...loaded, slots: buildSlots(loaded), precision: precisionOf(loaded.bars) };
  const { slots, precision, spans, last_price: lastPrice, name } = shown;
  reading.answer();
  if (view) setInView({ from: Math.max(view.from, slots[0]?.time ?? 0), to: view.to ?? loaded.to });
  chart.show({ slots, spans, width, precision, lastPrice, isLive, view });
  seriesInput.dataset.name = name;
  if (document.activeElement !== seriesInput) seriesInput.value = name;
  setText("name", name);
  setText("family", shown.index_type);
  showLastPrice();
  Object.assign(byId("chart").dataset, {
    series: shown.index_id,
    width: shown.width,
    bars: shown.bars.length,
    daily: shown.bars.filter(([, , , , , ticks]) => ticks === null).length,
    missing: slots.filter((slot) => stateOf(slot) === "missing").length,
    from: slots[0]?.time ?? "",
  });
  byId("note").hidden = !shown.is_cut && shown.bars.length > 0;
  setText(
    "note",
    shown.is_cut ? "The read took too long: scroll back for older bars." : "No bars in this range.",
  );
  showBar(
    shown,
    slots.find(({ time }) => time === pointedAt),
  );
  void overlays.load(shown);
  showGaps(shown, inView, hrefOfGap);
  if (byId("as-table", HTMLDetailsElement).open) showTable(shown);
}

/** The gap, and as much on both sides. */
function hrefOfGap({ from, to }: SecondsRange): string {
  const [path, query] = addressOf({ from: toMinute(2 * from - to), to: toMinute(2 * to - from) });
  return `${path}?${String(query).replaceAll("%3A", ":")}`;
}

function showLastPrice(): void {
  if (!shown) return;
  const { name, last_price: last, precision } = shown;
  const text = last === null ? "" : price(last.toFixed(precision));
  setText("last", text);
  document.title = text ? `${name} ${text}` : `${name} · mds-sync`;
}

/** The last bar moves with each tick, without a request. */
function addTicks(ticks: CommitNews["ticks"]): void {
  for (const [, , ts, tickPrice, volume] of ticks)
    feed?.addTick({ time: ts / MICROS_PER_SECOND, price: tickPrice, volume });
  const loaded = feed?.loaded;
  if (!loaded || !shown) return;
  shown = { ...loaded, slots: buildSlots(loaded), precision: shown.precision };
  chart.showLast(shown.slots, shown.last_price);
  showLastPrice();
  showBar(
    shown,
    shown.slots.find((slot) => slot.time === pointedAt),
  );
}

// ---- controls

function isAvailable(one: BarWidth): boolean {
  return series?.has_ticks !== false || one === "1d";
}

/** Whether the range has enough bars, and is short enough to be loaded at once. */
function isFitting(one: BarWidth, minBars = 2): boolean {
  const { from, to = now() } = picker.range();
  const count = (to - from) / secondsOf(one);
  return isAvailable(one) && count >= minBars && count < MAX_BARS;
}

function showWidths(): void {
  if (!isAvailable(width)) width = "1d";
  for (const input of byId("widths").querySelectorAll("input")) {
    const one = isWidth(input.value) ? input.value : width;
    input.disabled = !isAvailable(one);
    const title = input.disabled ? "Only daily bars are stored" : `Type ${one}`;
    if (input.parentElement) input.parentElement.title = title;
    input.checked = one === width;
  }
}

/** The range gives way to a width that does not fit it. */
function setWidth(chosen: BarWidth): void {
  if (!isAvailable(chosen) || chosen === width) return;
  width = chosen;
  const { to } = picker.range();
  const from = (to ?? now()) - DEFAULT_BARS * secondsOf(width);
  if (!isFitting(width, MIN_BARS)) picker.setRange(to === undefined ? { from } : { from, to });
  void choose();
}

/** The width gives way to a range that it does not fit. */
function setRange(): void {
  if (!isFitting(width)) width = widths.find((one) => isFitting(one)) ?? "1d";
  void choose();
}

/** `5` is 5m, `1` and `5` is 15m, `d` is 1d: whatever tells one width from the others. */
function typeWidth(key: string): void {
  const typed = typedWidth + key;
  const candidates = widths.filter((one) => one.startsWith(typed));
  typedWidth = candidates.length > 1 ? typed : "";
  const [only = widths.find((one) => one === `1${key}`)] = candidates;
  if (candidates.length <= 1 && only) setWidth(only);
}

function fillControls(): void {
  byId("widths").append(
    ...widths.map((one) =>
      element(
        "label",
        {},
        element("input", { type: "radio", name: "width", value: one }),
        element("span", {}, one),
      ),
    ),
  );
}

byId("widths").addEventListener("change", ({ target }) => {
  if (target instanceof HTMLInputElement && isWidth(target.value)) setWidth(target.value);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  if (/^[0-9mhd]$/.test(event.key)) typeWidth(event.key);
  else typedWidth = "";
});
byId("as-table").addEventListener("toggle", () => {
  if (shown) showTable(shown);
});
watchTheme(() => {
  chart.applyTheme();
  void overlays.load();
});
logInput.addEventListener("change", () => {
  saveToUrl("push");
  showScale();
});
seriesBox(seriesInput, byId("series-list"), (chosen) => {
  series = chosen;
  seriesInput.dataset.name = chosen.name;
  seriesInput.blur();
  byId("chart").focus({ preventScroll: true });
  void choose();
});
onNavigate(() => {
  series = undefined;
  readFromUrl();
  begin();
  void bars.now();
});

readFromUrl();
// Retry the start until there is something to show.
const bars = repeatWhileVisible(POLL_SECONDS, refresh, reading.fail);
const readChanged = throttle(CHANGED_SECONDS, () => void bars.now());
onCommit(({ ticks, ranges }) => {
  const own = ticks.filter(([type, id]) => type === series?.index_type && id === series.index_id);
  if (own.length > 0) addTicks(own);
  const { series: key, from, to } = feed?.loaded ?? { from: 0, to: 0 };
  const range = ranges.find(([of]) => of === key);
  if (!range) return;
  const changed = { from: range[1] / MICROS_PER_SECOND, to: range[2] / MICROS_PER_SECOND };
  if (changed.to <= from || (changed.from >= to && !feed?.isLive)) return;
  changedFrom = Math.min(changedFrom, changed.from);
  readChanged();
});
onMissed(() => {
  changedFrom = 0;
  void bars.now();
});
