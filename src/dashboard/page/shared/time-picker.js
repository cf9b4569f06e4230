// The range of time that a page shows: one of the usual lengths up to now, or whole days.

import { element } from "./page-base.js";

const DAY = 86_400;
export const ranges = {
  "6h": ["6 hours", DAY / 4],
  "1d": ["1 day", DAY],
  "3d": ["3 days", 3 * DAY],
  "1w": ["1 week", 7 * DAY],
  "1mo": ["30 days", 30 * DAY],
  "3mo": ["90 days", 90 * DAY],
  "200d": ["200 days", 200 * DAY],
};

const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

/**
 * Builds the controls into `container`. `params` are those of a URL (`range`, `from`, `to`), `now` the daemon's clock in seconds.
 */
export function timePicker(container, { params, fallback = "1w", now, onChange }) {
  const asked = params.get("range");
  const view = {
    range: asked in ranges || asked === "days" ? asked : fallback,
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

  /** Seconds since 1970; `to` is undefined if the range ends now. */
  const range = () => {
    if (view.range !== "days") return { from: now() - ranges[view.range][1] };
    const start = Date.parse(view.from) / 1000;
    // The last day is included.
    const end = Date.parse(view.to) / 1000 + DAY;
    return end > now() ? { from: start } : { from: start, to: end };
  };

  select.addEventListener("change", () => {
    const { from: start, to: end = now() } = range();
    if (select.value === "days") [view.from, view.to] = [day(start), day(end)];
    view.range = select.value;
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
    /** For the URL, so that the range can be shared. */
    params: () => (view.range === "days" ? { ...view } : { range: view.range }),
  };
}
