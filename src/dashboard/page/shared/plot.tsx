// Charts of figures that are not bars, drawn by uPlot in the colours of the page. `draw` runs again for each new value of `of`:
//   <Plot id="spread-plot" label="…" of={spreads} draw={(points) => ({ data: [xs, ys], xLabel: "time", …, lines: ["ask over bid"] })} />

import { useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { cssColour } from "./layout.tsx";
import { useRedraws } from "./page-base.ts";
import { withMinusSign } from "./text-format.ts";
import { aheadOfUtc, clockText, dayText, offsetOfZone } from "./time-format.ts";

interface PlotProps<T> {
  readonly id: string;
  readonly label: string;
  readonly of: T;
  /** Undefined: there is nothing to draw, and no room for it. */
  readonly draw: (of: T) => PlotDrawing | undefined;
  readonly [name: `data-${string}`]: number;
}

export function Plot<T>({ id, label, of, draw, ...data }: PlotProps<T>) {
  const target = useRef<HTMLDivElement>(null);
  const redraws = useRedraws();
  useLayoutEffect(() => {
    const [box, drawing] = [target.current, draw(of)];
    if (!box) return;
    box.hidden = !drawing;
    if (!drawing) return;
    const plot = new uPlot(plotOptions(box, drawing), drawing.data as uPlot.AlignedData, box);
    return () => plot.destroy();
  }, [of, redraws]);
  return <div class="plot" id={id} role="img" aria-label={label} ref={target} {...data} />;
}

/** The height of the line below the plot with the figures under the pointer. */
const LEGEND_PX = 30;

/** How many digits distinguish two neighbouring marks of an axis. */
function digitsOf([first = 0, second]: readonly number[]): number {
  const step = Math.abs((second ?? first) - first);
  return [0, 1, 2].find((digits) => Math.abs(Number(step.toFixed(digits)) - step) < 1e-9) ?? 3;
}

/** Room for the longest label of an axis, in pixels. */
const axisSize = (_: uPlot, labels: readonly string[] | null) =>
  Math.max(60, 18 + 8 * Math.max(0, ...(labels ?? []).map(({ length }) => length)));

/** Marks may be closer than a minute, which is all that they show. */
function timeMark(seconds: number, step: number): string {
  if (step >= 86_400) return dayText(seconds * 1000 + aheadOfUtc(seconds * 1000), true);
  return seconds % 60 === 0 ? clockText(seconds * 1e6) : "";
}

export interface PlotDrawing {
  /** The places on the x axis, ascending, and the values of each line there. */
  readonly data: readonly (readonly (number | null)[])[];
  readonly xLabel: string;
  readonly xValues: (value: number) => string;
  readonly yValue: (value: number, digits: number) => string;
  readonly lines: readonly (string | uPlot.Series)[];
  readonly hasPoints?: boolean;
  readonly isZoomable?: boolean;
  readonly isTime?: boolean;
  /** How far the x axis goes beyond the first and the last place: bars have halves there. */
  readonly xMargin?: number;
  /** The scale on the right, for the lines that name it. */
  readonly right?: Record<"scale" | "label", string> & { readonly value: (value: number) => string };
  readonly onDraw?: (plot: uPlot) => void;
}

function plotOptions(target: HTMLElement, drawing: PlotDrawing): uPlot.Options {
  const { xLabel, xValues, yValue, hasPoints = true, isTime = false, right } = drawing;
  const { isZoomable = false, xMargin = 0, onDraw } = drawing;
  const [soft, line] = [cssColour("soft"), cssColour("line")];
  const figure = (value: number, digits: number) => withMinusSign(yValue(value, digits));
  const inks = { grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
  const font = "12px system-ui";
  const axis = { stroke: soft, ...inks, font, labelFont: font, labelSize: 18 };
  const rightAxis = right && {
    ...{ ...axis, label: right.label, scale: right.scale, side: 1 as const, size: 60, grid: { show: false } },
    values: (_: uPlot, at: number[]) => at.map(right.value),
  };
  const margins = (_: uPlot, min: number, max: number): [number, number] => [min - xMargin, max + xMargin];
  // Bars of the right scale keep to the lower third.
  const lowerThird = (_: uPlot, __: number, max: number): [number, number] => [0, max * 3];
  return {
    width: target.clientWidth,
    height: target.clientHeight - LEGEND_PX,
    scales: {
      x: { time: isTime, ...(xMargin > 0 && { range: margins }) },
      ...(right && { [right.scale]: { range: lowerThird } }),
    },
    tzDate: (seconds) => new Date(seconds * 1000 + offsetOfZone(seconds * 1000)),
    cursor: { drag: { x: isZoomable, y: false } },
    hooks: onDraw ? { draw: [onDraw] } : {},
    axes: [
      {
        ...axis,
        ...(isTime ? { space: 80 } : { label: xLabel }),
        values: (_, at, __, ___, step) => at.map((one) => (isTime ? timeMark(one, step) : xValues(one))),
      },
      { ...axis, size: axisSize, values: (_, at) => at.map((value) => figure(value, digitsOf(at))) },
      ...(rightAxis ? [rightAxis] : []),
    ],
    series: [
      { label: xLabel, value: (_, value) => (value == null ? "" : xValues(value)) },
      ...drawing.lines.map((given, i): uPlot.Series => {
        const own = typeof given === "string" ? { label: given } : given;
        const value = own.scale === right?.scale && right ? right.value : (one: number) => figure(one, 2);
        return {
          stroke: cssColour(`line-${i + 1}`),
          width: 1.5,
          spanGaps: hasPoints,
          points: hasPoints ? { show: true, size: 6, fill: cssColour("card") } : { show: false },
          value: (_, one) => (one == null ? "" : value(one)),
          ...own,
        };
      }),
    ],
  };
}
