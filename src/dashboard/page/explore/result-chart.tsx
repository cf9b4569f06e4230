// A result as lines, bars, a scatter or candles.

import { useMemo, useState } from "preact/hooks";
import uPlot from "uplot";
import type { QueryAnswer, ScreenValue } from "../../../model/answers/query.ts";
import { cssColour } from "../shared/layout.tsx";
import { Choice } from "../shared/page.tsx";
import { Plot, type PlotDrawing } from "../shared/plot.tsx";
import { brief } from "../shared/text-format.ts";
import { momentText } from "../shared/time-format.ts";
import { isNumeric } from "./result-grid.tsx";

const MAX_LINES = 12;
const LINE_COLOURS = 6;
const timeColumn = /^(ts|time|day)$|_(ts|time|at)$|^(expiration|listing)$/;
const prices = ["open", "high", "low", "close"];
const preferred = /^(price|close|last|value|market_cap|mid|basis|funding_rate)$/;

type Table = Pick<QueryAnswer, "columns" | "rows">;

interface Axes {
  readonly x: string;
  readonly y: string;
  /** One line for each value of this column; empty: one line. */
  readonly split: string;
}

export type ChartKind = "lines" | "bars" | "scatter" | "candles";

/** Seconds since 1970 of a moment as the warehouse writes it: microseconds, a day or a time. */
function toSeconds(value: ScreenValue): number {
  if (typeof value === "number") return value > 1e14 ? value / 1e6 : value;
  return value === null ? Number.NaN : Date.parse(value) / 1000;
}

/** What to draw if nobody has chosen: time to the right, one line per name. */
function guessAxes({ columns, rows }: Table): Axes {
  const numeric = columns.filter((name, at) => isNumeric(rows, at) && !/(^|_)(id|ts)$/.test(name));
  const [first = ""] = columns;
  const x = columns.find((name) => timeColumn.test(name)) ?? first;
  const candidates = numeric.filter((name) => name !== x);
  const y = candidates.find((name) => preferred.test(name)) ?? candidates[0] ?? numeric[0] ?? first;
  const at = columns.indexOf(x);
  const hasTwins = new Set(rows.map((row) => row[at])).size < rows.length;
  const split = columns.find((name, place) => {
    if (!hasTwins || name === x || isNumeric(rows, place) || timeColumn.test(name)) return false;
    const values = new Set(rows.map((row) => row[place]));
    return values.size > 1 && values.size <= MAX_LINES;
  });
  return { x, y, split: split ?? "" };
}

export const canDrawCandles = ({ columns }: Table): boolean =>
  prices.every((name) => columns.includes(name)) && columns.some((name) => timeColumn.test(name));

/** One ascending list of x, and a list of y for each line, with null where a line has no value. */
function pivot({ columns, rows }: Table, { x, y, split }: Axes) {
  const [xAt, yAt, splitAt] = [columns.indexOf(x), columns.indexOf(y), columns.indexOf(split)];
  const isTime = timeColumn.test(x);
  const isNumber = isTime || isNumeric(rows, xAt);
  const labels = isNumber ? undefined : [...new Set(rows.map((row) => String(row[xAt])))];
  const place = new Map(labels?.map((label, at) => [label, at]));
  const toX = (value: ScreenValue) => {
    if (isTime) return toSeconds(value);
    return isNumber ? Number(value ?? Number.NaN) : (place.get(String(value)) ?? Number.NaN);
  };
  const lines = new Map<string, Map<number, number | null>>();
  for (const row of rows) {
    const name = splitAt < 0 ? y : String(row[splitAt]);
    const at = toX(row[xAt] ?? null);
    const line = lines.get(name) ?? new Map<number, number | null>();
    if (Number.isNaN(at) || (line.size === 0 && lines.size >= MAX_LINES)) continue;
    lines.set(name, line);
    const value = row[yAt];
    line.set(at, typeof value === "number" ? value : null);
  }
  const xs = [...new Set([...lines.values()].flatMap((line) => [...line.keys()]))].sort((a, b) => a - b);
  const toYs = (line: ReadonlyMap<number, number | null>) => xs.map((at) => line.get(at) ?? null);
  return { xs, labels, isTime, lines: [...lines].map(([name, line]) => ({ name, ys: toYs(line) })) };
}

const number = (value: number) =>
  Math.abs(value) >= 10_000 ? brief(value) : String(Number(value.toPrecision(6)));

const styles: Readonly<Record<ChartKind, () => Partial<uPlot.Series>>> = {
  lines: () => ({ points: { show: false } }),
  bars: () => {
    const paths = uPlot.paths.bars?.({ size: [0.7, 60] });
    return { ...(paths && { paths }), points: { show: false } };
  },
  scatter: () => ({ paths: () => null, points: { show: true, size: 5 } }),
  candles: () => ({ paths: () => null, points: { show: false }, stroke: cssColour("soft") }),
};

/** Of the lines of the four prices. */
function drawCandles(plot: uPlot): void {
  const { bbox, ctx: pen } = plot;
  const [times = [], ...lines] = plot.data;
  const [up, down] = [cssColour("up"), cssColour("down")];
  const placeOf = (at: number) => plot.valToPos(times[at] ?? 0, "x", true);
  const step = (placeOf(times.length - 1) - placeOf(0)) / Math.max(1, times.length - 1);
  const half = Math.max(0.5, Math.min(14, step * 0.35));
  pen.save();
  pen.beginPath();
  pen.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  pen.clip();
  times.forEach((_, at) => {
    const candle = lines.map((line) => line[at] ?? Number.NaN);
    const [open = 0, high = 0, low = 0, close = 0] = candle.map((value) => plot.valToPos(value, "y", true));
    const [left, top] = [placeOf(at), Math.min(open, close)];
    // Pixels count down from the top.
    pen.fillStyle = close <= open ? up : down;
    pen.fillRect(left - 0.5, high, 1, low - high);
    pen.fillRect(left - half, top, 2 * half, Math.max(1, Math.abs(close - open)));
  });
  pen.restore();
}

function toDrawing(pivoted: ReturnType<typeof pivot>, x: string, kind: ChartKind): PlotDrawing {
  const { xs, lines, labels, isTime } = pivoted;
  return {
    data: [xs, ...lines.map(({ ys }) => ys)],
    xLabel: x,
    xValues: (value) => (labels ? (labels[value] ?? "") : isTime ? momentText(value * 1e6) : number(value)),
    ...{ yValue: number, isTime, hasPoints: false, isZoomable: true },
    xMargin: kind === "bars" || kind === "candles" ? halfStep(xs) : 0,
    ...(kind === "candles" ? { onDraw: drawCandles } : {}),
    lines: lines.map(({ name }, i) => {
      const stroke = cssColour(`line-${(i % LINE_COLOURS) + 1}`);
      const fill = kind === "bars" ? { fill: `color-mix(in srgb, ${stroke} 50%, transparent)` } : {};
      return { label: name, stroke, ...fill, ...styles[kind]() };
    }),
  };
}

const halfStep = (xs: readonly number[]) =>
  xs.length > 1 ? ((xs.at(-1) ?? 0) - (xs[0] ?? 0)) / (xs.length - 1) / 2 : 0.5;

/** A new answer is a new chart: its `key` changes. */
export function ResultChart({ answer, kind }: { answer: Table; kind: ChartKind }) {
  const [axes, setAxes] = useState(() => guessAxes(answer));
  const drawing = useMemo(() => {
    const pivots = kind === "candles" ? prices.map((y) => ({ ...axes, y, split: "" })) : [axes];
    const [first, ...others] = pivots.map((one) => pivot(answer, one));
    const pivoted = first && { ...first, lines: [first, ...others].flatMap(({ lines }) => lines) };
    return { pivoted, kind };
  }, [axes, kind]);
  const { xs = [], lines = [] } = drawing.pivoted ?? {};
  const { columns, rows } = answer;
  const numeric = columns.filter((_, at) => isNumeric(rows, at));
  const choice = (axis: keyof Axes, label: string, options: readonly string[]) => (
    <Choice
      {...{ id: `axis-${axis}`, label, value: axes[axis] }}
      options={options.map((value) => [value, value || "–"])}
      onChoose={(value) => setAxes({ ...axes, [axis]: value })}
    />
  );
  return (
    <div id="plot">
      <form class="controls row" id="axes">
        {choice("x", "Across", columns)}
        {kind !== "candles" && choice("y", "Value", numeric.length > 0 ? numeric : columns)}
        {kind !== "candles" && choice("split", "One line per", ["", ...columns])}
      </form>
      <Plot
        {...{ id: "canvas", label: "The result as a chart", of: drawing }}
        {...{ "data-points": xs.length, "data-lines": lines.length }}
        draw={(of) => of.pivoted && toDrawing(of.pivoted, axes.x, kind)}
      />
    </div>
  );
}
