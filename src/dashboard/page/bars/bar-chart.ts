// Candles with their gaps, drawn by lightweight-charts.

import {
  CandlestickSeries,
  ColorType,
  CrosshairMode,
  createChart,
  HistogramSeries,
  type IPrimitivePaneRenderer,
  type IPrimitivePaneView,
  type ISeriesApi,
  type ISeriesPrimitive,
  type ITimeScaleApi,
  LineSeries,
  type Logical,
  PriceScaleMode,
  type PrimitivePaneViewZOrder,
  type SeriesAttachedParameter,
  type Time,
  type UTCTimestamp,
} from "lightweight-charts";
import type { ChartRange } from "../../../model/answers/chart-bars.ts";
import type { BarWidth } from "../../../model/time.ts";
import { cssColour, withOpacity } from "../shared/layout.ts";
import { price } from "../shared/text-format.ts";
import { type Slot, secondsOf, stateOf } from "./bar-slots.ts";

const MIN_BAND_PX = 2;
const LABEL_PX = 11;
const HATCH_PX = 7;

type Pen = CanvasRenderingContext2D;
type TimeScale = ITimeScaleApi<Time>;
type Reason = Pick<ChartRange, "state" | "reason">;
interface Band {
  readonly left: number;
  readonly right: number;
  readonly height: number;
}
type DrawBand = (pen: Pen, band: Band, reason: Reason) => void;

/** Where the left edge of a slot is. The library centres a candle in its slot, so a slot starts half a bar to the left. */
function slotEdge(scale: TimeScale | undefined, slot: number): number {
  const at = (index: number) => scale?.logicalToCoordinate(index as Logical) ?? Number.NaN;
  return at(0) + (slot - 0.5) * (at(1) - at(0));
}

/** Shaded ranges behind the candles, each labelled with its reason if there is room. */
class Bands implements ISeriesPrimitive<Time> {
  #scale: TimeScale | undefined;
  #update = () => {};
  #spans: readonly ChartRange[] = [];
  #start = 0;
  #length = 1;

  attached({ chart, requestUpdate }: SeriesAttachedParameter<Time>): void {
    this.#scale = chart.timeScale();
    this.#update = requestUpdate;
  }

  show(spans: readonly ChartRange[], start: number, length: number): void {
    this.#spans = spans.filter(({ state }) => state !== "none");
    this.#start = start;
    this.#length = length;
    this.#update();
  }

  paneViews(): IPrimitivePaneView[] {
    // The library draws its grid between the two layers, so that no grid line crosses a label.
    return [this.#view("bottom", drawShade), this.#view("normal", drawLabel)];
  }

  #view(zOrder: PrimitivePaneViewZOrder, draw: DrawBand): IPrimitivePaneView {
    const renderer: IPrimitivePaneRenderer = {
      draw: (target) =>
        target.useMediaCoordinateSpace(({ context, mediaSize: { width, height } }) => {
          for (const { from, to, ...span } of this.#spans) {
            const left = Math.max(0, this.#coordinate(from));
            const right = Math.min(width, Math.max(this.#coordinate(to), left + MIN_BAND_PX));
            if (right > 0 && left < width && right > left) draw(context, { left, right, height }, span);
          }
        }),
    };
    return { zOrder: () => zOrder, renderer: () => renderer };
  }

  #coordinate(time: number): number {
    return slotEdge(this.#scale, (time - this.#start) / this.#length);
  }
}

function drawShade(pen: Pen, { left, right, height }: Band, { state }: Reason): void {
  const colour = cssColour(`band-${state}`);
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, right - left, height);
  pen.clip();
  pen.fillStyle = colour;
  pen.fillRect(left, 0, right - left, height);
  if (state === "open" || state === "lost") {
    pen.beginPath();
    for (let x = left - height - (left % HATCH_PX); x < right; x += HATCH_PX) {
      pen.moveTo(x, height);
      pen.lineTo(x + height, 0);
    }
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.stroke();
  }
  pen.restore();
}

/** Writes horizontally if the label fits, else vertically, else not at all. */
function drawLabel(pen: Pen, { left, right, height }: Band, { state, reason }: Reason): void {
  const text = state === reason ? state : `${state}: ${reason}`;
  pen.save();
  pen.font = `${LABEL_PX}px system-ui, sans-serif`;
  pen.textBaseline = "top";
  pen.fillStyle = cssColour(`text-${state}`);
  const length = pen.measureText(text).width + 12;
  if (length <= right - left) pen.fillText(text, left + 6, 8);
  else if (right - left >= LABEL_PX + 3 && length <= height) {
    pen.translate((left + right + LABEL_PX) / 2, 8);
    pen.rotate(Math.PI / 2);
    pen.fillText(text, 0, 0);
  }
  pen.restore();
}

interface ShowOptions {
  readonly slots: readonly Slot[];
  readonly spans: readonly ChartRange[];
  readonly width: BarWidth;
  readonly precision: number;
  /** The series, width or range has changed, so the view is reset. */
  readonly isNew: boolean;
}

/** Another series as a line. */
export interface OverlayLine {
  readonly key: string;
  readonly colour: string;
  readonly points: readonly { readonly time: number; readonly value: number }[];
}

/** Calls `onPoint` with the slot that pointer or keys select; undefined if there is none. */
export function barChart(container: HTMLElement, onPoint: (slot: Slot | undefined) => void) {
  container.tabIndex = 0;
  const chart = createChart(container, {
    autoSize: true,
    // The page's footer has the attribution and the link.
    layout: { attributionLogo: false },
  });
  const volume = chart.addSeries(HistogramSeries, {
    priceScaleId: "volume",
    priceFormat: { type: "volume" },
    priceLineVisible: false,
    lastValueVisible: false,
  });
  volume.priceScale().applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
  const candles = chart.addSeries(CandlestickSeries);
  const overlays = new Map<string, ISeriesApi<"Line">>();
  const bands = new Bands();
  candles.attachPrimitive(bands);
  let slots: readonly Slot[] = [];
  let at = -1;

  const data = () => {
    const colours = {
      up: cssColour("up"),
      down: cssColour("down"),
      "up-pale": cssColour("up-pale"),
      "down-pale": cssColour("down-pale"),
    };
    return slots.map((slot) => {
      const { candle } = slot;
      const time = toTime(slot);
      if (!candle) return { time };
      const trend = candle.close >= candle.open ? "up" : "down";
      const color = colours[stateOf(slot) === "complete" ? trend : (`${trend}-pale` as const)];
      return { time, ...candle, color, borderColor: color, wickColor: color };
    });
  };
  const volumes = () => {
    const color = withOpacity(cssColour("soft"), 0.22);
    return slots.map((slot) => {
      const [time, value] = [toTime(slot), slot.volume ?? 0];
      return value > 0 ? { time, value, color } : { time };
    });
  };
  const applyTheme = () => {
    const [ink, soft, line] = [cssColour("ink"), cssColour("soft"), cssColour("line")];
    chart.applyOptions({
      layout: {
        background: { type: ColorType.Solid, color: "transparent" },
        textColor: soft,
        fontFamily: getComputedStyle(container).fontFamily,
      },
      grid: { vertLines: { visible: false }, horzLines: { color: line } },
      crosshair: {
        mode: CrosshairMode.Normal,
        vertLine: { color: soft, labelBackgroundColor: ink },
        horzLine: { color: soft, labelBackgroundColor: ink },
      },
      rightPriceScale: {
        borderVisible: false,
        entireTextOnly: true,
        scaleMargins: { top: 0.12, bottom: 0.2 },
      },
      timeScale: { borderColor: line, rightOffsetPixels: 20, minBarSpacing: 0.05 },
      handleScroll: { vertTouchDrag: false },
    });
  };
  const moveTo = (to: number) => {
    const place = Math.min(slots.length - 1, Math.max(0, to));
    const slot = slots[place];
    if (!slot) return;
    at = place;
    const level = slots.slice(0, at + 1).findLast(({ candle }) => candle?.close)?.candle?.close ?? 0;
    chart.setCrosshairPosition(level, toTime(slot), candles);
    keepInView(chart.timeScale(), at);
    onPoint(slot);
  };
  chart.subscribeCrosshairMove(({ logical, point }) => {
    if (!point) return;
    at = Math.round(logical ?? -1);
    onPoint(slots[at]);
  });
  container.addEventListener("pointerleave", () => clearPointer());
  container.addEventListener("blur", () => clearPointer());
  const clearPointer = () => {
    at = -1;
    chart.clearCrosshairPosition();
    onPoint(undefined);
  };
  container.addEventListener("keydown", (event) => {
    const here = at < 0 ? slots.length : at;
    const step = event.shiftKey ? 10 : 1;
    const keys: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => moveTo(here - step),
      ArrowRight: () => moveTo(here + step),
      Home: () => moveTo(0),
      End: () => moveTo(slots.length - 1),
      "+": () => zoom(chart.timeScale(), 0.8),
      "-": () => zoom(chart.timeScale(), 1.25),
      Escape: clearPointer,
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  applyTheme();

  return {
    show({ slots: shown, spans, width, precision, isNew }: ShowOptions): void {
      slots = shown;
      chart.applyOptions({
        timeScale: { timeVisible: width !== "1d", secondsVisible: false },
        localization: { timeFormatter: (time: Time) => `${utc(time)} UTC` },
      });
      candles.applyOptions({
        priceFormat: {
          type: "custom",
          minMove: 10 ** -precision,
          formatter: (value: number) => price(value.toFixed(precision)),
        },
      });
      candles.setData(data());
      volume.setData(volumes());
      bands.show(spans, slots[0]?.time ?? 0, secondsOf(width));
      if (isNew) chart.timeScale().fitContent();
    },
    /** All begin at 100. */
    showOverlays(lines: readonly OverlayLine[]): void {
      for (const [key, line] of overlays) {
        if (lines.some((one) => one.key === key)) continue;
        chart.removeSeries(line);
        overlays.delete(key);
      }
      for (const { key, colour, points } of lines) {
        const line =
          overlays.get(key) ?? chart.addSeries(LineSeries, { lineWidth: 2, priceLineVisible: false });
        overlays.set(key, line);
        line.applyOptions({ color: cssColour(colour) });
        line.setData(points.map(({ time, value }) => ({ time: time as UTCTimestamp, value })));
      }
    },
    setScale({ isLog, isRebased }: { readonly isLog: boolean; readonly isRebased: boolean }): void {
      const mode = isRebased
        ? PriceScaleMode.IndexedTo100
        : isLog
          ? PriceScaleMode.Logarithmic
          : PriceScaleMode.Normal;
      chart.priceScale("right").applyOptions({ mode });
    },
    /** Calls `redraw` with a function that gives the left edge of a slot, whenever the visible range changes. */
    onRangeChange(redraw: (edge: (slot: number) => number, width: number) => void): () => void {
      const scale = chart.timeScale();
      const call = () => redraw((slot) => slotEdge(scale, slot), scale.width());
      scale.subscribeVisibleLogicalRangeChange(call);
      scale.subscribeSizeChange(call);
      return call;
    },
    applyTheme(): void {
      applyTheme();
      candles.setData(data());
      volume.setData(volumes());
    },
  };
}

const toTime = ({ time }: Slot) => time as UTCTimestamp;

function utc(time: Time): string {
  return new Date(Number(time) * 1000).toISOString().slice(0, 16).replace("T", " ");
}

function keepInView(scale: TimeScale, index: number): void {
  const range = scale.getVisibleLogicalRange();
  if (!range || (index >= range.from && index <= range.to)) return;
  const shift = index < range.from ? index - range.from - 1 : index - range.to + 1;
  scale.setVisibleLogicalRange({ from: range.from + shift, to: range.to + shift });
}

function zoom(scale: TimeScale, factor: number): void {
  const range = scale.getVisibleLogicalRange();
  if (!range) return;
  const half = ((range.to - range.from) * factor) / 2;
  const middle = (range.from + range.to) / 2;
  scale.setVisibleLogicalRange({ from: middle - half, to: middle + half });
}
