// The range of time that a page shows: one of the usual lengths up to now, whole days, or what a reader has scrolled to.
//   const picked = readPicked(params, "1w", now);  rangeOf(picked, now);  <TimePicker picked={picked} now={now} onPick={…} />

import { MICROS_PER_SECOND, parseUserTime } from "../../../model/time.ts";
import { Field } from "./combobox.tsx";
import { Choice } from "./page.tsx";

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

export type PickedTime = { readonly range: RangeName; readonly from: string; readonly to: string };

/** Seconds since 1970; `to` is undefined if the range ends now. */
export type PickedRange = { readonly from: number; readonly to?: number };

/** In seconds; NaN: it is no time. */
const timeOf = (text: string, now: number) =>
  (parseUserTime(text, now * MICROS_PER_SECOND) ?? Number.NaN) / MICROS_PER_SECOND;

/** Of the parameters of a URL, which may contain anything: what is no range of time is the usual range. */
export function readPicked(params: URLSearchParams, usual: RangeName, now: number): PickedTime {
  const isTime = (text: string) => !Number.isNaN(timeOf(text, now));
  const [range = "", from = "", to = ""] = ["range", "from", "to"].map((name) => params.get(name) ?? "");
  if (isLength(range)) return { range, from: "", to: "" };
  if (range === "days" && isTime(from) && isTime(to)) return { range, from, to };
  const isExact = range === "" && isTime(from) && (to === "" || timeOf(from, now) < timeOf(to, now));
  return isExact ? { range: "exact", from, to } : { range: usual, from: "", to: "" };
}

export function pickedParams({ range, from, to }: PickedTime): Record<string, string> {
  if (isLength(range)) return { range };
  if (range === "days") return { range, from, to };
  return to === "" ? { from } : { from, to };
}

export function rangeOf({ range, from, to }: PickedTime, now: number): PickedRange {
  if (isLength(range)) return { from: now - ranges[range][1] };
  const start = timeOf(from, now);
  // The last day is included.
  const end = timeOf(to, now) + (range === "days" ? DAY : 0);
  return end < now ? { from: start, to: end } : { from: start };
}

/** `2026-03-01T12:00Z`, as an address has it. */
export const toMinute = (seconds: number) => `${new Date(seconds * 1000).toISOString().slice(0, 16)}Z`;

/** What a reader has scrolled to. */
export const pickExactly = ({ from, to }: PickedRange): PickedTime => ({
  range: "exact",
  from: toMinute(from),
  to: to === undefined ? "" : toMinute(to),
});

const dayOf = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 10);

type TimePickerProps = { picked: PickedTime; now: number; onPick: (picked: PickedTime) => void };

export function TimePicker({ picked, now, onPick }: TimePickerProps) {
  const options = [
    ...Object.entries(ranges).map(([value, [label]]) => [value, label] as const),
    ["days", "Days …"] as const,
    ...(picked.range === "exact" ? [["exact", "As scrolled"] as const] : []),
  ];
  const choose = (value: string) => {
    const { from, to = now } = rangeOf(picked, now);
    const days = { range: "days", from: dayOf(from), to: dayOf(to) } as const;
    onPick(isLength(value) ? { range: value, from: "", to: "" } : days);
  };
  const chooseDays = ({ currentTarget }: { currentTarget: HTMLElement }) => {
    const [from = "", to = ""] = [...currentTarget.querySelectorAll("input")].map(({ value }) => value);
    if (from && to) onPick({ range: "days", from, to });
  };
  return (
    <div class="row" id="picker">
      <Choice id="range" label="Range" value={picked.range} options={options} onChoose={choose} />
      {picked.range === "days" && (
        <Field id="from" label="From, to (UTC)">
          {/* A date that is being typed has no value, which a new drawing must not fill in. */}
          <div key={`${picked.from} ${picked.to}`} id="dates" onChange={chooseDays}>
            <input type="date" id="from" defaultValue={picked.from} />{" "}
            <input type="date" id="to" aria-label="To, this day included" defaultValue={picked.to} />
          </div>
        </Field>
      )}
    </div>
  );
}
