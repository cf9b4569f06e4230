// Shift and drag measures: the change of the price, and how many bars and how much time it took.

import { countNoun, direction, percentChange } from "../shared/text-format.ts";
import { duration } from "../shared/time-format.ts";

/** `place`: the number of the slot. */
type MeasuredPoint = { readonly place: number; readonly price: number };

interface MeasureOptions {
  readonly toPoint: (x: number, y: number) => MeasuredPoint | undefined;
  readonly toPixel: (point: MeasuredPoint) => { readonly x: number; readonly y: number };
  /** The start of a slot, in seconds. */
  readonly timeOf: (place: number) => number;
  readonly format: (price: number) => string;
}

export function measureTool(container: HTMLElement, { toPoint, toPixel, timeOf, format }: MeasureOptions) {
  const [box, text] = [document.createElement("div"), document.createElement("p")];
  text.role = "status";
  box.append(text);
  box.hidden = true;
  container.append(box);
  let from: MeasuredPoint | undefined;
  let to: MeasuredPoint | undefined;
  let isDragging = false;

  const pointAt = ({ clientX, clientY }: PointerEvent) => {
    const { left, top } = container.getBoundingClientRect();
    return toPoint(clientX - left, clientY - top);
  };
  const redraw = () => {
    box.hidden = !from || !to;
    if (!from || !to) return;
    const [start, end] = [toPixel(from), toPixel(to)];
    const [left, top] = [Math.min(start.x, end.x), Math.min(start.y, end.y)];
    const [width, height] = [Math.abs(end.x - start.x), Math.abs(end.y - start.y)];
    for (const [side, px] of Object.entries({ left, top, width, height }))
      box.style.setProperty(side, `${px}px`);
    const change = to.price - from.price;
    box.className = `measure ${direction(change) || "faint"}`;
    const bars = Math.abs(to.place - from.place);
    const seconds = Math.abs(timeOf(to.place) - timeOf(from.place));
    text.textContent = `${change < 0 ? "−" : "+"}${format(Math.abs(change))} (${percentChange((change / from.price) * 100)}) · ${countNoun(bars, "bar")}, ${duration(seconds)}`;
  };
  const clear = () => {
    from = to = undefined;
    isDragging = false;
    redraw();
  };

  container.addEventListener(
    "pointerdown",
    (event) => {
      clear();
      if (!event.shiftKey || event.button !== 0) return;
      // Without the mouse events that would follow, the library does not scroll.
      event.preventDefault();
      from = pointAt(event);
      isDragging = from !== undefined;
      if (isDragging) container.setPointerCapture(event.pointerId);
    },
    { capture: true },
  );
  container.addEventListener("pointermove", (event) => {
    if (!isDragging) return;
    to = pointAt(event) ?? to;
    redraw();
  });
  container.addEventListener("pointerup", () => {
    isDragging = false;
  });
  return { clear, redraw };
}
