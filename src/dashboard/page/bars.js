// One series as candles. What is looked at stands in the address, so that it can be sent to a colleague.

import { ask, byId, element, say, whileVisible } from "./asking.js";
import { barChart } from "./bar-chart.js";
import { gapsOf, MOST_BARS, merge, precisionOf, slots, stateOf, widths } from "./bar-slots.js";
import { seriesBox } from "./series-box.js";
import { count, duration, price, several } from "./words.js";

const DAY = 86_400;
const ranges = {
  "6h": ["6 hours", DAY / 4],
  "1d": ["1 day", DAY],
  "3d": ["3 days", 3 * DAY],
  "1w": ["1 week", 7 * DAY],
  "1mo": ["30 days", 30 * DAY],
  "3mo": ["90 days", 90 * DAY],
  "200d": ["200 days", 200 * DAY],
};
const TABLE_ROWS = 200;
const GAPS_SHOWN = 12;
const TAIL_BARS = 3;
const POLL_SECONDS = 4;
/** So many looks at the end of the range, then one at all of it: what is older may have healed. */
const LOOKS_A_ROUND = 12;

const asked = new URLSearchParams(location.search);
const view = {
  series: asked.has("id")
    ? { index_type: asked.get("type"), index_id: asked.get("id"), name: "" }
    : undefined,
  width: asked.get("width") in widths ? asked.get("width") : "1h",
  range: asked.get("range") in ranges || asked.get("range") === "days" ? asked.get("range") : "1w",
  from: asked.get("from") ?? "",
  to: asked.get("to") ?? "",
};
/** The daemon's clock minus the visitor's, in seconds. */
let clockOffset = 0;
let known;
let looks = 0;
/** The beginning of the bar that is pointed at. */
let pointedAt;
const chart = barChart(byId("chart"), showReading);

const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
const minute = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
const present = () => Date.now() / 1000 + clockOffset;

// ---- what is asked for

/** The range in seconds; its end is undefined where it follows the present. */
function wanted() {
  if (view.range !== "days") return { from: present() - ranges[view.range][1] };
  const from = Date.parse(view.from) / 1000;
  // The last day is part of it.
  const to = Date.parse(view.to) / 1000 + DAY;
  return to > present() ? { from } : { from, to };
}

function barsIn(width) {
  const { from, to = present() } = wanted();
  return (to - from) / widths[width];
}

function path({ from, to }) {
  const moment = (seconds) => new Date(Math.floor(seconds) * 1000).toISOString();
  const query = new URLSearchParams({
    type: view.series.index_type,
    id: view.series.index_id,
    width: view.width,
    from: moment(from),
    ...(to === undefined ? {} : { to: moment(to) }),
  });
  return `/api/bars?${query}`;
}

// A window that ends now moves on with the time: one that only grew would one day ask for more than is given.
function oldestShown() {
  const { from, to } = wanted();
  if (to !== undefined) return known.from;
  return Math.max(known.from, from, present() - (MOST_BARS - 2) * widths[view.width]);
}

async function look() {
  const isTail = known !== undefined && wanted().to === undefined && looks % LOOKS_A_ROUND !== 0;
  const question = isTail
    ? path({ from: known.to - TAIL_BARS * widths[view.width] })
    : path(known ? { ...wanted(), from: oldestShown() } : wanted());
  const current = JSON.stringify(view);
  const answer = await ask(question);
  // Somebody chose something else while it was on its way.
  if (current !== JSON.stringify(view)) return;
  const isNew = known === undefined;
  known = isTail ? merge(known, answer) : answer;
  looks++;
  show(isNew);
}

async function lookAnew() {
  known = undefined;
  looks = 0;
  offerWidths();
  keepInAddress();
  try {
    await look();
  } catch (error) {
    complain(error);
  }
}

function keepInAddress() {
  const { series, width, range, from, to } = view;
  const query = new URLSearchParams({ type: series.index_type, id: series.index_id, width, range });
  if (range === "days") for (const [key, value] of Object.entries({ from, to })) query.set(key, value);
  history.replaceState(null, "", `/bars?${query}`);
}

function complain(error) {
  byId("note").hidden = false;
  say("note", error instanceof TypeError ? "The daemon does not answer." : error.message);
}

// ---- what is shown

function show(isNew) {
  const made = slots(known);
  const precision = precisionOf(known.bars);
  const figures = { made, precision, missing: made.filter((slot) => stateOf(slot) === "missing").length };
  chart.show({ slots: made, spans: known.spans, width: view.width, precision, isNew });
  Object.assign(known, figures);
  view.series.name = known.name;
  byId("series").dataset.name = known.name;
  if (document.activeElement !== byId("series")) byId("series").value = known.name;
  say("name", known.name);
  say("family", known.index_type);
  const last = made.findLast(({ close }) => close !== undefined && close !== null);
  say("last", last ? price(last.close.toFixed(precision)) : "");
  document.title = last
    ? `${known.name} ${price(last.close.toFixed(precision))}`
    : `${known.name} · mds-sync`;
  Object.assign(byId("chart").dataset, {
    series: known.index_id,
    width: known.width,
    bars: known.bars.length,
    missing: figures.missing,
  });
  byId("note").hidden = !known.is_cut && known.bars.length > 0;
  say(
    "note",
    known.is_cut
      ? `Reading took long: bars before ${minute(known.from)} UTC are not shown.`
      : "No bars in this range.",
  );
  showReading(made.find(({ time }) => time === pointedAt));
  showGaps();
  showTable();
}

/** The bar in words: the one that is pointed at, else the newest. */
function showReading(pointed) {
  pointedAt = pointed?.time;
  if (!known?.made) return;
  const slot = pointed ?? known.made.findLast((one) => stateOf(one) !== "missing") ?? known.made.at(-1);
  if (!slot) return byId("reading").replaceChildren();
  const part = (label, value) =>
    element("span", {}, element("i", {}, label), ` ${price(value.toFixed(known.precision))}`);
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
  byId("reading").replaceChildren(when, ...figures, element("span", { "data-state": state }, inWords(slot)));
}

function inWords(slot) {
  const reason = slot.span
    ? ` (${slot.span.state === slot.span.reason ? "" : `${slot.span.state}, `}${slot.span.reason})`
    : "";
  const proven = `${percent(slot.coverage)} proven`;
  return {
    whole: "whole",
    settling: slot.coverage > 0 ? `${proven}, the rest awaits its confirmation` : "awaits its confirmation",
    partial: `${proven}${reason}`,
    missing: `no bar${reason}`,
  }[stateOf(slot)];
}

/** What is not everything never reads like it. */
function percent(share) {
  return `${share >= 1 ? 100 : Math.min(99, Math.floor(share * 100))} %`;
}

/** Short ones to the second; the day is said once where both ends are on it. */
function rangeOf(from, to) {
  const digits = to - from < 3_600 ? 19 : 16;
  const [first, last] = [from, to].map((seconds) =>
    new Date(seconds * 1000).toISOString().slice(0, digits).replace("T", " "),
  );
  return `${first} → ${first.slice(0, 10) === last.slice(0, 10) ? last.slice(11) : last}`;
}

function showGaps() {
  const gaps = gapsOf(known.spans).toReversed();
  byId("gaps").hidden = gaps.length === 0;
  byId("no-gaps").hidden = gaps.length > 0;
  const total = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const more = gaps.length > GAPS_SHOWN ? `, the newest ${GAPS_SHOWN} are shown` : "";
  say(
    "gaps-note",
    gaps.length > 0 ? `${several(gaps.length, "stretch", "stretches")}, ${duration(total)}${more}` : "",
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
          element("td", { className: "faint" }, rangeOf(from, to)),
        ),
      ),
  );
}

function showTable() {
  if (!byId("as-table").open) return;
  const figure = (value) => element("td", { className: "number" }, value);
  const digits = (value) =>
    value === undefined || value === null ? "–" : price(value.toFixed(known.precision));
  byId("bars").tBodies[0].replaceChildren(
    ...known.made
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
          element("td", { className: "soft" }, inWords(slot)),
        ),
      ),
  );
}

// ---- what is chosen

/** Only widths that give between two bars and as many as the daemon sends at once. */
function offerWidths() {
  const fits = (width) => barsIn(width) >= 2 && barsIn(width) <= MOST_BARS - 2;
  if (!fits(view.width)) view.width = Object.keys(widths).find(fits) ?? view.width;
  for (const input of byId("widths").querySelectorAll("input")) {
    input.disabled = !fits(input.value);
    input.parentElement.title = input.disabled ? "Not with this range: too many bars, or fewer than two" : "";
    input.checked = input.value === view.width;
  }
}

function offerChoices() {
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
  byId("range").append(
    ...Object.entries(ranges).map(([value, [label]]) => element("option", { value }, label)),
    element("option", { value: "days" }, "Days …"),
  );
  byId("range").value = view.range;
  byId("dates").hidden = view.range !== "days";
  byId("from").value = view.from;
  byId("to").value = view.to;
}

byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("widths").addEventListener("change", (event) => {
  view.width = event.target.value;
  void lookAnew();
});
byId("range").addEventListener("change", () => {
  const { from, to = present() } = wanted();
  if (byId("range").value === "days") [view.from, view.to] = [day(from), day(to)];
  view.range = byId("range").value;
  byId("dates").hidden = view.range !== "days";
  byId("from").value = view.from;
  byId("to").value = view.to;
  void lookAnew();
});
byId("dates").addEventListener("change", () => {
  const [from, to] = [byId("from").value, byId("to").value];
  if (!from || !to) return;
  [view.from, view.to] = [from, to];
  void lookAnew();
});
byId("as-table").addEventListener("toggle", () => known && showTable());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.dress());
seriesBox(byId("series"), byId("series-list"), (series) => {
  view.series = series;
  byId("series").dataset.name = series.name;
  byId("series").blur();
  byId("chart").focus({ preventScroll: true });
  void lookAnew();
});

let hasBegun = false;

async function begin() {
  if (hasBegun) return lookAnew();
  const daemon = await ask("/api/daemon");
  clockOffset = (Date.parse(daemon.generated_at) - Date.now()) / 1000;
  if (!view.series) [view.series] = await ask("/api/series?name=");
  if (!view.series) throw new Error("No index ticks are followed yet.");
  offerChoices();
  hasBegun = true;
  await lookAnew();
}

/** Until there is something to look at, beginning is what is tried again. */
whileVisible(POLL_SECONDS, () => (known ? look() : begin()), complain);
