// What is behind the candles: the proof as a tint, with its reasons, and where the source of the bars changes.

import type { IPrimitivePaneView, ISeriesPrimitive, SeriesAttachedParameter, Time } from "lightweight-charts";
import type { ChartRange, SecondsRange } from "../../../model/answers/chart-bars.ts";
import { cssColour } from "../shared/layout.tsx";
import { listCovered, positionOf, type Slot } from "./bar-slots.ts";

const MIN_BAND_PX = 2;
const LABEL_PX = 11;
const HATCH_PX = 7;
const MIN_SOURCE_PX = 60;

type Pen = CanvasRenderingContext2D;
type TimeScale = ReturnType<SeriesAttachedParameter<Time>["chart"]["timeScale"]>;
type Logical = Parameters<TimeScale["logicalToCoordinate"]>[0];
type Band = SecondsRange & { readonly state: ChartRange["state"] | "covered"; readonly reason: string };
type Box = Readonly<Record<"left" | "right" | "height", number>>;
type Size = Readonly<Record<"width" | "height", number>>;

/** Where the left edge of a slot is. The library centres a candle in its slot, so a slot starts half a bar to the left. */
export function slotEdge(scale: TimeScale | undefined, position: number): number {
  const at = (index: number) => scale?.logicalToCoordinate(index as Logical) ?? Number.NaN;
  return at(0) + (position - 0.5) * (at(1) - at(0));
}

/** Tinted ranges behind the candles, each labelled with its reason if there is room. */
export class Bands implements ISeriesPrimitive<Time> {
  #scale: TimeScale | undefined;
  #update = () => {};
  #slots: readonly Slot[] = [];
  #bands: readonly Band[] = [];
  /** The first slot after each change of the source. */
  #changes: readonly number[] = [];

  attached({ chart, requestUpdate }: SeriesAttachedParameter<Time>): void {
    this.#scale = chart.timeScale();
    this.#update = requestUpdate;
  }

  show(slots: readonly Slot[], spans: readonly ChartRange[]): void {
    this.#slots = slots;
    this.#bands = [
      ...listCovered(slots, spans).map((range): Band => ({ ...range, state: "covered", reason: "" })),
      ...spans.filter(({ state }) => state !== "none"),
    ];
    this.#changes = slots.flatMap((slot, i) => (i > 0 && slot.isDaily !== slots[i - 1]?.isDaily ? [i] : []));
    this.#update();
  }

  paneViews(): IPrimitivePaneView[] {
    // The library draws its grid between the two layers, so that no grid line crosses a label.
    return [
      this.#view("bottom", (pen, size) => this.#drawBands(pen, size, drawTint)),
      this.#view("normal", (pen, size) => {
        this.#drawBands(pen, size, drawReason);
        this.#drawSources(pen, size);
      }),
    ];
  }

  #view(zOrder: "bottom" | "normal", draw: (pen: Pen, size: Size) => void): IPrimitivePaneView {
    const renderer: ReturnType<IPrimitivePaneView["renderer"]> = {
      draw: (target) => target.useMediaCoordinateSpace(({ context, mediaSize }) => draw(context, mediaSize)),
    };
    return { zOrder: () => zOrder, renderer: () => renderer };
  }

  #drawBands(pen: Pen, { width, height }: Size, draw: (pen: Pen, box: Box, band: Band) => void): void {
    for (const band of this.#bands) {
      // Whole pixels: neighbours meet without a seam.
      const [from = 0, to = 0] = [band.from, band.to].map((time) =>
        Math.round(slotEdge(this.#scale, positionOf(this.#slots, time))),
      );
      if (to < 0 || from > width) continue;
      const left = Math.max(0, from);
      const right = Math.min(width, Math.max(to, from + MIN_BAND_PX));
      if (right > left) draw(pen, { left, right, height }, band);
    }
  }

  #drawSources(pen: Pen, { width, height }: Size): void {
    const edges = this.#changes.map((change) => slotEdge(this.#scale, change));
    pen.save();
    pen.font = `${LABEL_PX}px system-ui, sans-serif`;
    pen.textBaseline = "bottom";
    pen.fillStyle = pen.strokeStyle = cssColour("soft");
    pen.setLineDash([3, 3]);
    this.#changes.forEach((change, i) => {
      const x = Math.round(edges[i] ?? 0) + 0.5;
      if (x < 0 || x > width) return;
      pen.beginPath();
      pen.moveTo(x, 0);
      pen.lineTo(x, height);
      pen.stroke();
      const nameOf = (slot: number) => (this.#slots[slot]?.isDaily ? "daily bars" : "ticks");
      pen.textAlign = "right";
      if (x - Math.max(0, edges[i - 1] ?? 0) > MIN_SOURCE_PX)
        pen.fillText(nameOf(change - 1), x - 6, height - 6);
      pen.textAlign = "left";
      if (Math.min(width, edges[i + 1] ?? width) - x > MIN_SOURCE_PX)
        pen.fillText(nameOf(change), x + 6, height - 6);
    });
    pen.restore();
  }
}

function drawTint(pen: Pen, { left, right, height }: Box, { state }: Band): void {
  const colour = cssColour(`band-${state}`);
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, right - left, height);
  pen.clip();
  pen.fillStyle = colour;
  pen.fillRect(left, 0, right - left, height);
  if (state === "open" || state === "lost" || state === "unconfirmed") {
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
function drawReason(pen: Pen, { left, right, height }: Box, { state, reason }: Band): void {
  if (state === "covered") return;
  const text = state === "unconfirmed" ? reason : `${state}: ${reason}`;
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
