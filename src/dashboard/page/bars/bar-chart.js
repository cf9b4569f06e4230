// Candles with their gaps, drawn by lightweight-charts.

import {
  CandlestickSeries,
  ColorType,
  CrosshairMode,
  createChart,
  HistogramSeries,
  LineSeries,
  PriceScaleMode,
} from "lightweight-charts";
import { cssColour, withOpacity } from "../shared/layout.js";
import { price } from "../shared/text-format.js";
import { stateOf, widths } from "./bar-slots.js";

const MIN_BAND_PX = 2;
const LABEL_PX = 11;
const HATCH_PX = 7;

/** Shaded ranges behind the candles, each labelled with its reason if there is room. */
class Bands {
  #scale;
  #update = () => {};
  #spans = [];
  #start = 0;
  #length = 1;

  attached({ chart, requestUpdate }) {
    this.#scale = chart.timeScale();
    this.#update = requestUpdate;
  }

  show(spans, start, length) {
    this.#spans = spans.filter(({ state }) => state !== "none");
    this.#start = start;
    this.#length = length;
    this.#update();
  }

  paneViews() {
    // The library draws its grid between the two layers, so that no grid line crosses a label.
    return [this.#view("bottom", drawShade), this.#view("normal", drawLabel)];
  }

  #view(zOrder, draw) {
    const drawAll = ({ context, mediaSize: { width, height } }) => {
      for (const { from, to, ...span } of this.#spans) {
        const left = Math.max(0, this.#coordinate(from));
        const right = Math.min(width, Math.max(this.#coordinate(to), left + MIN_BAND_PX));
        if (right > 0 && left < width && right > left) draw(context, { left, right, height }, span);
      }
    };
    const renderer = { draw: (target) => target.useMediaCoordinateSpace(drawAll) };
    return { zOrder: () => zOrder, renderer: () => renderer };
  }

  /** The library centres a candle in its slot, so a slot starts half a bar to the left. */
  #coordinate(time) {
    const [zero, one] = [0, 1].map((index) => this.#scale.logicalToCoordinate(index) ?? Number.NaN);
    return zero + ((time - this.#start) / this.#length - 0.5) * (one - zero);
  }
}

function drawShade(pen, { left, right, height }, { state }) {
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
function drawLabel(pen, { left, right, height }, { state, reason }) {
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

/** Calls `onPoint` with the slot that pointer or keys select; undefined if there is none. */
export function barChart(container, onPoint) {
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
  const overlays = new Map();
  const bands = new Bands();
  candles.attachPrimitive(bands);
  let slots = [];
  let at = -1;

  const data = () => {
    const colours = {
      up: cssColour("up"),
      down: cssColour("down"),
      "up-pale": cssColour("up-pale"),
      "down-pale": cssColour("down-pale"),
    };
    return slots.map((slot) => {
      const { time, open, high, low, close } = slot;
      const state = stateOf(slot);
      if (state === "missing") return { time };
      const color = colours[`${close >= open ? "up" : "down"}${state === "complete" ? "" : "-pale"}`];
      return { time, open, high, low, close, color, borderColor: color, wickColor: color };
    });
  };
  const volumes = () => {
    const color = withOpacity(cssColour("soft"), 0.22);
    return slots.map(({ time, volume: value }) => (value > 0 ? { time, value, color } : { time }));
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
  const moveTo = (to) => {
    if (slots.length === 0) return;
    at = Math.min(slots.length - 1, Math.max(0, to));
    const slot = slots[at];
    const level = slot.close ?? slots.slice(0, at).findLast(({ close }) => close)?.close ?? 0;
    chart.setCrosshairPosition(level, slot.time, candles);
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
    const keys = {
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
    /** `isNew`: the series, width or range has changed, so the view is reset. */
    show({ slots: shown, spans, width, precision, isNew }) {
      slots = shown;
      chart.applyOptions({
        timeScale: { timeVisible: width !== "1d", secondsVisible: false },
        localization: { timeFormatter: (time) => `${utc(time)} UTC` },
      });
      candles.applyOptions({
        priceFormat: {
          type: "custom",
          minMove: 10 ** -precision,
          formatter: (value) => price(value.toFixed(precision)),
        },
      });
      candles.setData(data());
      volume.setData(volumes());
      bands.show(spans, slots[0]?.time ?? 0, widths[width]);
      if (isNew) chart.timeScale().fitContent();
    },
    /** Other series as lines, [{ key, colour, points: [{ time, value }] }]; all begin at 100. */
    showOverlays(lines) {
      for (const [key, line] of overlays) {
        if (lines.some((one) => one.key === key)) continue;
        chart.removeSeries(line);
        overlays.delete(key);
      }
      for (const { key, colour, points } of lines) {
        if (!overlays.has(key))
          overlays.set(key, chart.addSeries(LineSeries, { lineWidth: 2, priceLineVisible: false }));
        overlays.get(key).applyOptions({ color: cssColour(colour) });
        overlays.get(key).setData(points);
      }
    },
    setScale({ isLog, isRebased }) {
      const mode = isRebased
        ? PriceScaleMode.IndexedTo100
        : isLog
          ? PriceScaleMode.Logarithmic
          : PriceScaleMode.Normal;
      chart.priceScale("right").applyOptions({ mode });
    },
    /** Calls `redraw` with a function that gives the left edge of a slot, whenever the visible range changes. */
    onRangeChange(redraw) {
      const scale = chart.timeScale();
      const edge = (slot) => {
        const [zero, one] = [0, 1].map((index) => scale.logicalToCoordinate(index) ?? Number.NaN);
        return zero + (slot - 0.5) * (one - zero);
      };
      const call = () => redraw(edge, scale.width());
      scale.subscribeVisibleLogicalRangeChange(call);
      scale.subscribeSizeChange(call);
      return call;
    },
    applyTheme() {
      applyTheme();
      candles.setData(data());
      volume.setData(volumes());
    },
  };
}

function utc(time) {
  return new Date(time * 1000).toISOString().slice(0, 16).replace("T", " ");
}

function keepInView(scale, index) {
  const range = scale.getVisibleLogicalRange();
  if (!range || (index >= range.from && index <= range.to)) return;
  const shift = index < range.from ? index - range.from - 1 : index - range.to + 1;
  scale.setVisibleLogicalRange({ from: range.from + shift, to: range.to + shift });
}

function zoom(scale, factor) {
  const range = scale.getVisibleLogicalRange();
  if (!range) return;
  const half = ((range.to - range.from) * factor) / 2;
  const middle = (range.from + range.to) / 2;
  scale.setVisibleLogicalRange({ from: middle - half, to: middle + half });
}
