// The range of time that a page shows: one of the usual lengths up to now, whole days, or what a reader has scrolled to.

import { MICROS_PER_SECOND, parseUserTime } from "../../../model/time.ts";
import { element } from "./page-base.ts";

const DAY = 86_400;
const ranges = {
  "6h": ["6 hours", DAY / 4],
  "1d": ["1 day", DAY],
  "3d": ["3 days", 3 * DAY],
  "1w": ["1 week", 7 * DAY],
  "1mo": ["30 days", 30 * DAY],
  "3mo": ["90 days", 90 * DAY],
  "200d": ["200 days", 200 * DAY],
  "1y": ["1 year", 365 * DAY],
  "5y": ["5 years", 5 * 365 * DAY],
  all: ["All", 20 * 365 * DAY],
} as const;
/** `exact`: two moments, `to` may be absent for now. */
type RangeName = keyof typeof ranges | "days" | "exact";
const isLength = (text: string): text is keyof typeof ranges => Object.hasOwn(ranges, text);

interface PickerView {
  readonly range: RangeName;
  readonly from: string;
  readonly to: string;
}

/** In seconds; NaN: it is no time. */
const timeOf = (text: string, now: number) =>
  (parseUserTime(text, now * MICROS_PER_SECOND) ?? Number.NaN) / MICROS_PER_SECOND;

/** An address may contain anything: what is no range of time is the usual range. */
function readView(params: URLSearchParams, fallback: RangeName, now: number): PickerView {
  const isTime = (text: string) => !Number.isNaN(timeOf(text, now));
  const [range = "", from = "", to = ""] = ["range", "from", "to"].map((name) => params.get(name) ?? "");
  if (isLength(range)) return { range, from: "", to: "" };
  const isDays = range === "days" && isTime(from) && isTime(to);
  if (isDays) return { range: "days", from, to };
  const isExact = range === "" && isTime(from) && (to === "" || timeOf(from, now) < timeOf(to, now));
  return isExact ? { range: "exact", from, to } : { range: fallback, from: "", to: "" };
}

/** `2026-03-01T12:00Z`, as an address has it. */
export const toMinute = (seconds: number) => `${new Date(seconds * 1000).toISOString().slice(0, 16)}Z`;

const day = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 10);

interface TimePickerOptions {
  /** Those of a URL: `range`, `from`, `to`. */
  readonly params: URLSearchParams;
  readonly fallback?: RangeName;
  /** The daemon's clock in seconds. */
  readonly now: () => number;
  readonly onChange: () => void;
}

/** Seconds since 1970; `to` is undefined if the range ends now. */
export interface PickedRange {
  readonly from: number;
  readonly to?: number;
}

interface TimePicker {
  readonly range: () => PickedRange;
  /** For the URL, so that the range can be shared. */
  readonly params: () => Record<string, string>;
  /** Follows the URL. */
  readonly setParams: (params: URLSearchParams) => void;
  /** Follows what a reader has scrolled to. */
  readonly setRange: (range: PickedRange) => void;
}

/** Builds the controls into `container`. */
export function timePicker(
  container: HTMLElement,
  { params, fallback = "1w", now, onChange }: TimePickerOptions,
): TimePicker {
  let view = readView(params, fallback, now());
  const select = element("select", { id: "range" });
  select.append(
    ...Object.entries(ranges).map(([value, [label]]) => element("option", { value }, label)),
    element("option", { value: "days" }, "Days …"),
    element("option", { value: "exact", hidden: "" }, "As scrolled"),
  );
  const from = element("input", { type: "date", id: "from" });
  const to = element("input", { type: "date", id: "to", "aria-label": "To, this day included" });
  const dates = element(
    "div",
    { className: "box dates", id: "dates" },
    element("label", { for: "from" }, "From, to (UTC)"),
    element("div", {}, from, " ", to),
  );
  container.append(
    element("div", { className: "box" }, element("label", { for: "range" }, "Range"), select),
    dates,
  );
  const update = () => {
    select.value = view.range;
    dates.hidden = view.range !== "days";
    if (view.range !== "days") return;
    from.value = view.from;
    to.value = view.to;
  };

  const range = (): PickedRange => {
    if (isLength(view.range)) return { from: now() - ranges[view.range][1] };
    const start = timeOf(view.from, now());
    // The last day is included.
    const end = timeOf(view.to, now()) + (view.range === "days" ? DAY : 0);
    return end < now() ? { from: start, to: end } : { from: start };
  };

  select.addEventListener("change", () => {
    const { from: start, to: end = now() } = range();
    view = isLength(select.value)
      ? { range: select.value, from: "", to: "" }
      : { range: "days", from: day(start), to: day(end) };
    update();
    onChange();
  });
  dates.addEventListener("change", () => {
    if (!from.value || !to.value) return;
    view = { range: "days", from: from.value, to: to.value };
    onChange();
  });
  update();
  return {
    range,
    params: (): Record<string, string> => {
      if (isLength(view.range)) return { range: view.range };
      if (view.range === "days") return { ...view };
      return view.to === "" ? { from: view.from } : { from: view.from, to: view.to };
    },
    setParams: (changed) => {
      view = readView(changed, fallback, now());
      update();
    },
    setRange: (changed) => {
      view = {
        range: "exact",
        from: toMinute(changed.from),
        to: changed.to === undefined ? "" : toMinute(changed.to),
      };
      update();
    },
  };
}
