// A result as lines, bars or a scatter (uPlot) or as candles (lightweight-charts).

import { CandlestickSeries, ColorType, createChart } from "lightweight-charts";
import uPlot from "uplot";
import { cssColour, withOpacity } from "../shared/layout.js";
import { element } from "../shared/page-base.js";
import { brief } from "../shared/text-format.js";
import { isNumeric } from "./result-grid.js";

const MAX_LINES = 12;
const LINE_COLOURS = 6;
const timeColumn = /^(ts|time|day)$|_(ts|time|at)$|^(expiration|listing)$/;
const prices = ["open", "high", "low", "close"];
const preferred = /^(price|close|last|value|market_cap|mid|basis|funding_rate)$/;

/** Seconds since 1970 of a moment as the warehouse writes it: microseconds, a day or a time. */
export function toSeconds(value) {
  if (typeof value === "number") return value > 1e14 ? value / 1e6 : value;
  return value === null ? Number.NaN : Date.parse(value) / 1000;
}

/** What to draw if nobody has chosen: time to the right, one line per name. */
export function guessAxes({ columns, rows }) {
  const numeric = columns.filter((name, at) => isNumeric(rows, at) && !/(^|_)(id|ts)$/.test(name));
  const x = columns.find((name) => timeColumn.test(name)) ?? columns[0];
  const candidates = numeric.filter((name) => name !== x);
  const y = candidates.find((name) => preferred.test(name)) ?? candidates[0] ?? numeric[0] ?? columns[0];
  const at = columns.indexOf(x);
  const hasTwins = new Set(rows.map((row) => row[at])).size < rows.length;
  const split = columns.find((name, place) => {
    if (!hasTwins || name === x || isNumeric(rows, place) || timeColumn.test(name)) return false;
    const values = new Set(rows.map((row) => row[place]));
    return values.size > 1 && values.size <= MAX_LINES;
  });
  return { x, y, split: split ?? "" };
}

export function canDrawCandles({ columns }) {
  return prices.every((name) => columns.includes(name)) && columns.some((name) => timeColumn.test(name));
}

/** One ascending list of x, and a list of y for each line, with null where a line has no value. */
export function pivot({ columns, rows }, { x, y, split }) {
  const [xAt, yAt, splitAt] = [x, y, split].map((name) => columns.indexOf(name));
  const isTime = timeColumn.test(x);
  const isNumber = isTime || isNumeric(rows, xAt);
  const labels = isNumber ? undefined : [...new Set(rows.map((row) => String(row[xAt])))];
  const place = new Map(labels?.map((label, at) => [label, at]));
  const toX = (value) => (isTime ? toSeconds(value) : isNumber ? value : place.get(String(value)));
  const lines = new Map();
  for (const row of rows) {
    const name = splitAt < 0 ? y : String(row[splitAt]);
    const at = toX(row[xAt]);
    if (at === null || Number.isNaN(at)) continue;
    if (!lines.has(name)) {
      if (lines.size >= MAX_LINES) continue;
      lines.set(name, new Map());
    }
    lines.get(name).set(at, typeof row[yAt] === "number" ? row[yAt] : null);
  }
  const xs = [...new Set([...lines.values()].flatMap((line) => [...line.keys()]))].sort((a, b) => a - b);
  return {
    xs,
    labels,
    isTime,
    lines: [...lines].map(([name, line]) => ({ name, ys: xs.map((at) => line.get(at) ?? null) })),
  };
}

const number = (value) => (Math.abs(value) >= 10_000 ? brief(value) : String(Number(value.toPrecision(6))));

const DAY = 86_400;
const iso = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ");

/** UTC, as the warehouse writes it: the day where it begins, else the time. */
function timeLabel(seconds, step) {
  if (step >= 28 * DAY) return iso(seconds).slice(0, 7);
  return step >= DAY || seconds % DAY === 0 ? iso(seconds).slice(5, 10) : iso(seconds).slice(11, 16);
}

/** How uPlot writes the positions on the x axis, and the one under the pointer. */
function xFormat(labels, isTime) {
  if (labels) return { axis: (_, at) => at.map((i) => labels[i] ?? ""), point: (_, i) => labels[i] ?? "" };
  if (!isTime)
    return { axis: (_, at) => at.map(number), point: (_, value) => (value === null ? "–" : number(value)) };
  return {
    axis: (_, at, __, ___, step) => at.map((seconds) => timeLabel(seconds, step)),
    point: (_, seconds) => (seconds === null ? "–" : iso(seconds).slice(0, 19)),
  };
}

const styles = {
  lines: () => ({ points: { show: false } }),
  bars: () => ({ paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } }),
  scatter: () => ({ paths: () => null, points: { show: true, size: 5 } }),
};

function drawPlot(target, result, axes, kind) {
  const { xs, lines, labels, isTime } = pivot(result, axes);
  const [soft, line] = [cssColour("soft"), cssColour("line")];
  const format = xFormat(labels, isTime);
  const axis = {
    stroke: soft,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line },
    font: "12px system-ui",
  };
  const plot = new uPlot(
    {
      width: target.clientWidth,
      height: target.clientHeight - 34,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      scales: {
        x: { time: isTime, ...(kind === "bars" && xs.length > 0 ? { range: paddedRange(xs) } : {}) },
      },
      cursor: { drag: { x: true, y: false } },
      legend: { live: true },
      axes: [
        { ...axis, values: format.axis },
        {
          ...axis,
          size: 70,
          values: (_, values) => values.map((value) => (value === null ? "" : number(value))),
        },
      ],
      series: [
        { label: axes.x, value: format.point },
        ...lines.map(({ name }, i) => {
          const colour = cssColour(`line-${(i % LINE_COLOURS) + 1}`);
          const fill = kind === "bars" ? { fill: withOpacity(colour, 0.5) } : {};
          return {
            label: name,
            stroke: colour,
            width: 1.5,
            spanGaps: false,
            value: (_, value) => (value === null ? "–" : number(value)),
            ...fill,
            ...styles[kind](),
          };
        }),
      ],
    },
    [xs, ...lines.map(({ ys }) => ys)],
    target,
  );
  target.dataset.points = xs.length;
  target.dataset.lines = lines.length;
  return {
    resize: () => plot.setSize({ width: target.clientWidth, height: target.clientHeight - 34 }),
    remove: () => plot.destroy(),
  };
}

/** Half a bar of room at both ends. */
function paddedRange(xs) {
  const step = xs.length > 1 ? (xs.at(-1) - xs[0]) / (xs.length - 1) : 1;
  return [xs[0] - step / 2, xs.at(-1) + step / 2];
}

function drawCandles(target, { columns, rows }, { x }) {
  const chart = createChart(target, {
    autoSize: true,
    layout: {
      attributionLogo: false,
      background: { type: ColorType.Solid, color: "transparent" },
      textColor: cssColour("soft"),
    },
    grid: { vertLines: { visible: false }, horzLines: { color: cssColour("line") } },
    rightPriceScale: { borderVisible: false },
    timeScale: { borderColor: cssColour("line"), timeVisible: x !== "day" },
  });
  const [up, down] = [cssColour("up"), cssColour("down")];
  const candles = chart.addSeries(CandlestickSeries, {
    upColor: up,
    downColor: down,
    borderUpColor: up,
    borderDownColor: down,
    wickUpColor: up,
    wickDownColor: down,
  });
  const at = columns.indexOf(x);
  const [open, high, low, close] = prices.map((name) => columns.indexOf(name));
  // The library wants ascending times, each once.
  const byTime = new Map(
    rows.filter((row) => row[close] !== null).map((row) => [Math.floor(toSeconds(row[at])), row]),
  );
  candles.setData(
    [...byTime]
      .sort(([a], [b]) => a - b)
      .map(([time, row]) => ({ time, open: row[open], high: row[high], low: row[low], close: row[close] })),
  );
  chart.timeScale().fitContent();
  target.dataset.points = byTime.size;
  target.dataset.lines = 1;
  return { resize: () => {}, remove: () => chart.remove() };
}

/** Draws results into `target`; `controls` gets the choice of the axes. */
export function resultChart(target, controls) {
  let drawn;
  let result;
  let axes;
  let kind = "lines";

  const draw = () => {
    drawn?.remove();
    target.replaceChildren();
    drawn = kind === "candles" ? drawCandles(target, result, axes) : drawPlot(target, result, axes, kind);
  };
  const choice = (axis, label, options) => {
    const select = element("select", { id: `axis-${axis}` });
    select.append(...options.map(([value, text]) => element("option", { value }, text)));
    select.value = axes[axis];
    select.addEventListener("change", () => {
      axes = { ...axes, [axis]: select.value };
      draw();
    });
    return element("div", { className: "box" }, element("label", { for: `axis-${axis}` }, label), select);
  };
  const showControls = () => {
    const all = result.columns.map((name) => [name, name]);
    const numeric = result.columns.filter((_, at) => isNumeric(result.rows, at)).map((name) => [name, name]);
    controls.replaceChildren(
      choice("x", "Across", all),
      ...(kind === "candles" ? [] : [choice("y", "Value", numeric.length > 0 ? numeric : all)]),
      ...(kind === "candles" ? [] : [choice("split", "One line per", [["", "–"], ...all])]),
    );
  };
  controls.addEventListener("submit", (event) => event.preventDefault());
  new ResizeObserver(() => drawn?.resize()).observe(target);
  return {
    show(shown, chosen) {
      if (shown !== result) axes = guessAxes(shown);
      result = shown;
      kind = chosen;
      showControls();
      draw();
    },
    redraw: () => drawn && draw(),
    clear() {
      drawn?.remove();
      drawn = undefined;
      result = undefined;
    },
  };
}
