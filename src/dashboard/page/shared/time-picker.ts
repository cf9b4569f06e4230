// The range of time that a page shows: one of the usual lengths up to now, or whole days.

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
} as const;
type RangeName = keyof typeof ranges | "days";
const isRange = (text: string): text is RangeName => Object.hasOwn(ranges, text) || text === "days";

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
}

/** Builds the controls into `container`. */
export function timePicker(
  container: HTMLElement,
  { params, fallback = "1w", now, onChange }: TimePickerOptions,
): TimePicker {
  const asked = params.get("range") ?? "";
  const view = {
    range: isRange(asked) ? asked : fallback,
    from: params.get("from") ?? "",
    to: params.get("to") ?? "",
  };
  const select = element("select", { id: "range" });
  select.append(
    ...Object.entries(ranges).map(([value, [label]]) => element("option", { value }, label)),
    element("option", { value: "days" }, "Days …"),
  );
  const from = element("input", { type: "date", id: "from", value: view.from });
  const to = element("input", {
    type: "date",
    id: "to",
    value: view.to,
    "aria-label": "To, this day included",
  });
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
    from.value = view.from;
    to.value = view.to;
  };

  const range = (): PickedRange => {
    if (view.range !== "days") return { from: now() - ranges[view.range][1] };
    const start = Date.parse(view.from) / 1000;
    // The last day is included.
    const end = Date.parse(view.to) / 1000 + DAY;
    return end > now() ? { from: start } : { from: start, to: end };
  };

  select.addEventListener("change", () => {
    const { from: start, to: end = now() } = range();
    if (select.value === "days") [view.from, view.to] = [day(start), day(end)];
    if (isRange(select.value)) view.range = select.value;
    update();
    onChange();
  });
  dates.addEventListener("change", () => {
    if (!from.value || !to.value) return;
    [view.from, view.to] = [from.value, to.value];
    onChange();
  });
  update();
  return {
    range,
    params: () => (view.range === "days" ? { ...view } : { range: view.range }),
  };
}
