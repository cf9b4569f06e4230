// Candles before their proof, drawn by lightweight-charts.

import {
  CandlestickSeries,
  ColorType,
  CrosshairMode,
  createChartEx,
  defaultHorzScaleBehavior,
  HistogramSeries,
  type IChartApi,
  type ISeriesApi,
  LineSeries,
  LineStyle,
  type Logical,
  PriceScaleMode,
  TickMarkType,
  type Time,
  type UTCTimestamp,
} from "lightweight-charts";
import { cssColour } from "../shared/layout.tsx";
import { price } from "../shared/text-format.ts";
import { aheadOfUtc, clockText, dayText, momentText } from "../shared/time-format.ts";
import type { PickedRange } from "../shared/time-picker.tsx";
import { Bands } from "./bands.ts";
import type { ShownBars } from "./bar-report.tsx";
import { type Comparison, DAY_SECONDS, positionOf, precisionFor, type Slot, stateOf } from "./bar-slots.ts";
import { measureTool } from "./measure.ts";

/** Half of the widest usual letter of the axis. */
const HALF_LETTER_PX = 3.5;
/** The fraction of the view that stays free after the last bar. */
const RIGHT_MARGIN = 0.04;

type ScalePoints = Parameters<
  InstanceType<ReturnType<typeof defaultHorzScaleBehavior>>["fillWeightsForPoints"]
>[0];

/** The library marks the days of UTC; here they are those of the chosen zone. */
class ZonedScale extends defaultHorzScaleBehavior() {
  readonly #toZone: (seconds: number) => number;

  constructor(toZone: (seconds: number) => number) {
    super();
    this.#toZone = toZone;
  }

  override fillWeightsForPoints(points: ScalePoints, startIndex: number): void {
    const zoned = points.map((point) => ({
      ...point,
      time: this.convertHorzItemToInternal(this.#toZone(Number(this.key(point.time))) as UTCTimestamp),
    }));
    super.fillWeightsForPoints(zoned, startIndex);
    for (const [i, point] of points.entries()) point.timeWeight = zoned[i]?.timeWeight ?? point.timeWeight;
  }
}

interface BarChartOptions {
  /** The slot that pointer or keys select. */
  readonly onPoint: (slot: Slot | undefined) => void;
  /** The range that is in view, in slots; `isByHand`: a reader scrolled or zoomed. */
  readonly onView: (from: number, to: number, isByHand: boolean) => void;
}

export interface OverlayLine {
  readonly key: string;
  readonly colour: string;
  readonly points: readonly { readonly time: number; readonly value: number }[];
}

export function barChart(container: HTMLElement, { onPoint, onView }: BarChartOptions) {
  container.tabIndex = 0;
  let slots: readonly Slot[] = [];
  /** A moment as if its zone were UTC: the chosen zone, but a daily bar is a day of UTC. */
  const toZone = (seconds: number) =>
    slots[positionOf(slots, seconds)]?.isDaily ? seconds : seconds + aheadOfUtc(seconds * 1000) / 1000;
  const chart: IChartApi = createChartEx<Time, ZonedScale>(container, new ZonedScale(toZone), {
    autoSize: true,
    // The page's footer has the attribution and the link.
    layout: { attributionLogo: false },
    kineticScroll: { touch: !matchMedia("(prefers-reduced-motion: reduce)").matches },
  });
  const bare = { priceLineVisible: false, lastValueVisible: false };
  const volumeScale = { priceScaleId: "volume", priceFormat: { type: "volume" } } as const;
  const volume = chart.addSeries(HistogramSeries, { ...volumeScale, ...bare });
  volume.priceScale().applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
  // The library's own label is that of the last bar in view.
  const candles = chart.addSeries(CandlestickSeries, bare);
  const lastPriceLine = candles.createPriceLine({ price: 0, lineWidth: 1, lineStyle: LineStyle.Dotted });
  const drawn = new Map<string, ISeriesApi<"Line">>();
  const bands = new Bands();
  candles.attachPrimitive(bands);
  let at = -1;
  /** What will be in view with the next frame. */
  let nextView: { readonly from: number; readonly to: number } | undefined;
  let isByHand = false;
  let precision = 2;
  /** Where one figure of two series takes the place of the candles. */
  let comparedPrecision: number | undefined;
  const formatPrice = (value: number) =>
    value < 0 && comparedPrecision === undefined ? "" : price(value.toFixed(comparedPrecision ?? precision));
  const showCandles = () => {
    const minMove = 10 ** -(comparedPrecision ?? precision);
    // Below the first bars of a long history is room for the volume, but no price.
    const priceFormat = { type: "custom", minMove, formatter: formatPrice } as const;
    for (const one of [candles, ...drawn.values()]) one.applyOptions({ priceFormat });
    candles.applyOptions({ visible: comparedPrecision === undefined });
  };
  const measure = measureTool(container, {
    toPoint: (x, y) => {
      const value = candles.coordinateToPrice(y);
      const place = chart.timeScale().coordinateToLogical(x);
      if (value === null || place === null) return undefined;
      return { place: Math.min(slots.length - 1, Math.max(0, Math.round(place))), price: value };
    },
    toPixel: (point) => ({
      x: chart.timeScale().logicalToCoordinate(point.place as Logical) ?? 0,
      y: candles.priceToCoordinate(point.price) ?? 0,
    }),
    timeOf: (place) => slots[place]?.time ?? 0,
    format: (value) => price(value.toFixed(precision)),
  });

  const toCandle = (slot: Slot) => {
    const { candle } = slot;
    const time = toTime(slot);
    if (!candle) return { time };
    const trend = candle.close >= candle.open ? "up" : "down";
    const color = cssColour(stateOf(slot) === "complete" ? trend : `${trend}-pale`);
    return { time, ...candle, color, borderColor: color, wickColor: color };
  };
  const toVolume = (slot: Slot) => {
    const [time, value] = [toTime(slot), slot.volume ?? 0];
    return value > 0 ? { time, value, color: cssColour("volume") } : { time };
  };
  const setData = () => {
    candles.setData(slots.map(toCandle));
    volume.setData(slots.map(toVolume));
  };
  const showLastPrice = (value: number | null) => {
    const last = slots.findLast(({ candle }) => candle)?.candle;
    const isShown = value !== null;
    const color = cssColour(isShown && last && value < last.open ? "down" : "up");
    lastPriceLine.applyOptions({ price: value ?? 0, lineVisible: isShown, axisLabelVisible: isShown, color });
  };
  const applyTheme = () => {
    const [ink, soft, line] = [cssColour("ink"), cssColour("soft"), cssColour("line")];
    const background = { type: ColorType.Solid, color: "transparent" } as const;
    const cross = { color: soft, labelBackgroundColor: ink };
    const margins = { top: 0.12, bottom: 0.2 };
    chart.applyOptions({
      layout: { background, textColor: soft, fontFamily: getComputedStyle(container).fontFamily },
      grid: { vertLines: { visible: false }, horzLines: { color: line } },
      crosshair: { mode: CrosshairMode.Normal, vertLine: cross, horzLine: cross },
      rightPriceScale: { borderVisible: false, entireTextOnly: true, scaleMargins: margins },
      timeScale: { borderColor: line, minBarSpacing: 0.05 },
      handleScroll: { vertTouchDrag: false },
    });
    setData();
  };
  const moveTo = (to: number) => {
    const place = Math.min(slots.length - 1, Math.max(0, to));
    const slot = slots[place];
    if (!slot) return;
    at = place;
    const level = slots.slice(0, at + 1).findLast(({ candle }) => candle?.close)?.candle?.close ?? 0;
    chart.setCrosshairPosition(level, toTime(slot), candles);
    keepInView(at);
    onPoint(slot);
  };
  const pointAt = (x: number) => {
    at = Math.round(chart.timeScale().coordinateToLogical(x) ?? -1);
    onPoint(slots[at]);
  };
  chart.subscribeCrosshairMove(({ point, sourceEvent }) => {
    // Without an event of the mouse, the bars have moved under a crosshair that keys have placed.
    if (!point || !sourceEvent) return;
    // Until the next frame, bars that were just loaded have moved the others.
    if (nextView) requestAnimationFrame(() => pointAt(point.x));
    else pointAt(point.x);
  });
  const clearPointer = () => {
    at = -1;
    chart.clearCrosshairPosition();
    onPoint(undefined);
  };
  container.addEventListener("pointerleave", clearPointer);
  container.addEventListener("blur", clearPointer);
  container.addEventListener("keydown", (event) => {
    const here = at < 0 ? slots.length : at;
    const step = event.shiftKey ? 10 : 1;
    const keys: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => moveTo(here - step),
      ArrowRight: () => moveTo(here + step),
      Home: () => moveTo(0),
      End: () => moveTo(slots.length - 1),
      "+": () => zoom(0.8),
      "-": () => zoom(1.25),
      Escape: () => {
        measure.clear();
        clearPointer();
      },
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    isByHand = true;
    act();
  });
  const noteHand = () => {
    isByHand = true;
  };
  for (const name of ["wheel", "pointerdown"]) container.addEventListener(name, noteHand, { passive: true });
  const setView = (from: number, to: number) => {
    nextView = { from, to };
    chart.timeScale().setVisibleLogicalRange(nextView);
    // After the frame of the library, which was requested before.
    requestAnimationFrame(() => {
      nextView = undefined;
    });
  };
  /** The library applies a range with the next frame: until then it returns the one before. */
  const viewed = () => nextView ?? chart.timeScale().getVisibleLogicalRange();
  const keepInView = (index: number) => {
    const range = viewed();
    if (!range || (index >= range.from && index <= range.to)) return;
    const shift = index < range.from ? index - range.from - 1 : index - range.to + 1;
    setView(range.from + shift, range.to + shift);
  };
  /** About the middle, but no farther beyond the first and the last bar than the view was. */
  const zoom = (factor: number) => {
    const range = viewed();
    if (!range) return;
    const length = (range.to - range.from) * factor;
    const to = Math.min((range.from + range.to + length) / 2, Math.max(range.to, slots.length - 1));
    setView(Math.max(to - length, Math.min(range.from, 0)), to);
  };
  let firstMark = Number.POSITIVE_INFINITY;
  let namedMonth = -1;
  /** Called from left to right: the first mark of a month names it, and none is written where an edge would cut it. */
  const formatMark = (time: Time, type: TickMarkType): string => {
    const seconds = Number(time);
    const zoned = toZone(seconds);
    const month = new Date(zoned * 1000).getUTCMonth();
    const isFirst = seconds <= firstMark || month !== namedMonth;
    // The first bar of a day may begin later than the day.
    const text =
      zoned % DAY_SECONDS === 0
        ? dayText(zoned * 1000, isFirst)
        : clockText(seconds * 1e6, isFirst || type < TickMarkType.Time);
    const place = chart.timeScale().timeToCoordinate(time) ?? 0;
    const half = text.length * HALF_LETTER_PX;
    if (place < half || place > chart.timeScale().width() - half) return "";
    firstMark = Math.min(firstMark, seconds);
    namedMonth = month;
    return text;
  };
  /** The library keeps the text of a mark until its options change. */
  const formatMarks = () => {
    firstMark = Number.POSITIVE_INFINITY;
    chart.applyOptions({ timeScale: { tickMarkFormatter: formatMark } });
  };
  const reportView = () => {
    formatMarks();
    const range = chart.timeScale().getVisibleLogicalRange();
    if (range && slots.length > 0) onView(range.from, range.to, isByHand);
    measure.redraw();
  };
  chart.timeScale().subscribeVisibleLogicalRangeChange(reportView);
  applyTheme();

  return {
    /**
     * `view`: the series, width or range has changed, and this part is brought into view; without an end, all up to the last bar.
     * `isLive`: new bars at the end are live ones, and a view of the end moves with them.
     */
    show(bars: ShownBars, view: PickedRange | undefined, isLive: boolean): void {
      const { spans, width } = bars;
      const isDay = width === "1d";
      const before = slots[0]?.time;
      const inView = viewed();
      const isAtEnd = inView !== null && inView.to >= slots.length - 1;
      ({ slots, precision } = bars);
      if (view) isByHand = false;
      chart.applyOptions({
        timeScale: {
          timeVisible: !isDay,
          secondsVisible: false,
          // The first bar of a day of another zone may be shown with its time.
          tickMarkMaxCharacterLength: aheadOfUtc(Date.now()) === 0 ? 8 : 12,
        },
        localization: { timeFormatter: (time: Time) => momentText(Number(time) * 1e6, isDay ? 10 : 16) },
      });
      showCandles();
      setData();
      formatMarks();
      bands.show(slots, spans);
      // The newest price of all, which may not be in view.
      showLastPrice(bars.last_price);
      if (view) {
        measure.clear();
        const from = Math.max(0, positionOf(slots, view.from));
        const end = view.to === undefined ? slots.length : positionOf(slots, view.to);
        // The library counts to the last slot in view.
        setView(from, end - 1 + (view.to === undefined ? (end - from) * RIGHT_MARGIN : 0));
      } else if (inView && before !== undefined) {
        const added = positionOf(slots, before);
        if (added > 0 || !isAtEnd || !isLive) setView(inView.from + added, inView.to + added);
      }
    },
    /** All begin at 100; or one line takes the place of the candles. */
    showOverlays(lines: readonly OverlayLine[], how: Comparison): void {
      const isFigure = how !== "course" && lines.length > 0;
      comparedPrecision = isFigure
        ? precisionFor(lines.flatMap(({ points }) => points.map(({ value }) => value)))
        : undefined;
      for (const [key, line] of drawn) {
        if (lines.some((one) => one.key === key)) continue;
        chart.removeSeries(line);
        drawn.delete(key);
      }
      for (const { key, colour, points } of lines) {
        const line = drawn.get(key) ?? chart.addSeries(LineSeries, { lineWidth: 2, priceLineVisible: false });
        drawn.set(key, line);
        line.applyOptions({ color: cssColour(colour) });
        line.setData(points.map(({ time, value }) => ({ time: time as UTCTimestamp, value })));
      }
      showCandles();
    },
    setScale({ isLog, isRebased }: { readonly isLog: boolean; readonly isRebased: boolean }): void {
      const own = isLog ? PriceScaleMode.Logarithmic : PriceScaleMode.Normal;
      chart.priceScale("right").applyOptions({ mode: isRebased ? PriceScaleMode.IndexedTo100 : own });
    },
    applyTheme,
  };
}

const toTime = ({ time }: Slot) => time as UTCTimestamp;
