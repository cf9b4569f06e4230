// What the page says about the bars in words: the bar under the pointer, the gaps, the newest bars as a table.

import type { ChartBarsResult, ChartRange, SecondsRange } from "../../../model/answers/chart-bars.ts";
import { byId, cell, element, setRows, setText, soft } from "../shared/page-base.ts";
import {
  amount,
  count,
  countNoun,
  direction,
  duration,
  momentText,
  percentChange,
  price,
} from "../shared/text-format.ts";
import { listGaps, type Slot, stateOf } from "./bar-slots.ts";

const TABLE_ROWS = 200;
const GAPS_SHOWN = 12;

/** What was read last, and what is shown of it. */
export interface ShownBars extends ChartBarsResult {
  readonly slots: readonly Slot[];
  readonly precision: number;
}

const minute = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");

/** The change since the close of the bar before, as exchanges count it. */
function changeOf(slots: readonly Slot[], slot: Slot): number | undefined {
  const before = slots.slice(0, slots.indexOf(slot)).findLast(({ candle }) => candle)?.candle;
  return slot.candle && before ? slot.candle.close - before.close : undefined;
}

/** Describes the bar under the pointer, else the newest bar. */
export function showBar({ slots, precision }: ShownBars, pointed: Slot | undefined): void {
  const slot = pointed ?? slots.findLast(({ candle }) => candle) ?? slots.at(-1);
  if (!slot) return void byId("bar-details").replaceChildren();
  const digits = (value: number) => price(value.toFixed(precision));
  const part = (label: string, value: string) => element("span", {}, element("i", {}, label), ` ${value}`);
  const when = slot.isDaily ? `${minute(slot.time).slice(0, 10)} UTC` : momentText(slot.time * 1e6, 16);
  const { candle, ticks = 0, expected = 0, volume = null } = slot;
  const change = changeOf(slots, slot);
  const figures = candle
    ? [
        part("O", digits(candle.open)),
        part("H", digits(candle.high)),
        part("L", digits(candle.low)),
        part("C", digits(candle.close)),
        ...(change === undefined
          ? []
          : [
              element(
                "span",
                { className: `change ${direction(change)}` },
                `${change < 0 ? "−" : "+"}${digits(Math.abs(change))} (${percentChange((change / (candle.close - change)) * 100)})`,
              ),
            ]),
        part(slot.isDaily ? "V" : "V 24 h", amount(volume)),
        element("span", {}, ticks === null ? "daily bar" : `${count(ticks)} of ${count(expected)} ticks`),
      ]
    : [];
  byId("bar-details").replaceChildren(
    element("span", { className: "when" }, when),
    ...figures,
    element("span", { "data-state": stateOf(slot) }, describeSlot(slot)),
  );
}

function describeSlot(slot: Slot): string {
  const { span, coverage = 0, isDaily } = slot;
  const what = span && isDaily && span.stream === "index_ticks" ? "ticks " : "";
  const isSaid = span?.state === "none" || span?.state === "unconfirmed";
  const reason = span ? ` (${what}${isSaid ? "" : `${span.state}, `}${span.reason})` : "";
  const proven = `${percent(coverage)} proven`;
  return {
    complete: `complete${what ? reason : ""}`,
    unconfirmed: coverage > 0 ? `${proven}, the rest awaits confirmation` : "awaits confirmation",
    partial: `${proven}${reason}`,
    missing: `no bar${reason}`,
  }[stateOf(slot)];
}

/** Shows 100 % only for a complete bar. */
function percent(fraction: number): string {
  return `${fraction >= 1 ? 100 : Math.min(99, Math.floor(fraction * 100))} %`;
}

/** Short ranges with seconds; the date of the end is omitted if it equals that of the start. */
function formatRange(from: number, to: number): string {
  const digits = to - from < 3_600 ? 19 : 16;
  const text = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, digits).replace("T", " ");
  const [first, last] = [text(from), text(to)];
  return `${first} → ${first.slice(0, 10) === last.slice(0, 10) ? last.slice(11) : last}`;
}

/** The gaps, as far as they are in view. Each row leads to the whole of its gap. */
export function showGaps(
  { spans: all, bars }: ShownBars,
  view: SecondsRange,
  hrefOf: (gap: SecondsRange) => string,
): void {
  const spans = all
    .filter(({ from, to }) => from < view.to && to > view.from)
    .map((span) => ({
      ...span,
      whole: span,
      from: Math.max(span.from, view.from),
      to: Math.min(span.to, view.to),
    }));
  const gaps = listGaps(spans).toReversed();
  byId("gaps").hidden = gaps.length === 0;
  byId("no-gaps").hidden = gaps.length > 0;
  setText("no-gaps", describeNoGaps(spans, bars.length > 0));
  const total = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const more = gaps.length > GAPS_SHOWN ? `, the newest ${GAPS_SHOWN} are shown` : "";
  setText(
    "gaps-note",
    gaps.length > 0 ? `${countNoun(gaps.length, "range")}, ${duration(total)}${more}` : "",
  );
  setRows(
    "gaps",
    gaps.slice(0, GAPS_SHOWN).map(({ from, to, state, stream, reason, whole }) => {
      const beyond = [whole.from < from ? "before" : "", whole.to > to ? "after" : ""].filter(Boolean);
      return element(
        "tr",
        { "data-state": state },
        element(
          "td",
          {},
          element("i", { className: "mark", "data-state": state }),
          state,
          soft(` ${reason}${stream === "ohlcv" ? ", daily bars" : ""}`),
        ),
        cell("number", duration(to - from)),
        element(
          "td",
          {},
          element("a", { href: hrefOf(whole) }, formatRange(from, to)),
          soft(beyond.length > 0 ? ` goes on ${beyond.join(" and ")}` : ""),
        ),
      );
    }),
  );
}

/** What awaits confirmation or was never selected is not proven either. */
function describeNoGaps(spans: readonly ChartRange[], hasBars: boolean): string {
  const tell = (state: ChartRange["state"], name: string) => {
    const own = spans.filter((span) => span.state === state);
    const length = own.reduce((sum, { from, to }) => sum + to - from, 0);
    return length > 0 ? ` ${name}: ${duration(length)}.` : "";
  };
  const unselected = tell("none", "Not selected");
  if (unselected && !hasBars) return "Nothing in view is selected.";
  return `Nothing is missing.${tell("unconfirmed", "Awaiting confirmation")}${unselected}`;
}

export function showTable({ slots, precision }: ShownBars): void {
  const figure = (value: string) => cell("number", value);
  const wide = (value: string) => cell("number wide", value);
  const digits = (value: number | undefined) => (value === undefined ? "–" : price(value.toFixed(precision)));
  const ticksOf = ({ ticks, expected = 0 }: Slot) => {
    if (ticks === undefined) return "–";
    return ticks === null ? "daily bar" : `${count(ticks)} / ${count(expected)}`;
  };
  setRows(
    "bars",
    slots
      .slice(-TABLE_ROWS)
      .toReversed()
      .map((slot) =>
        element(
          "tr",
          { "data-state": stateOf(slot), "data-time": slot.time },
          element("td", {}, minute(slot.time)),
          ...(["open", "high", "low"] as const).map((part) => wide(digits(slot.candle?.[part]))),
          figure(digits(slot.candle?.close)),
          figure(amount(slot.volume)),
          wide(ticksOf(slot)),
          wide(slot.coverage === undefined ? "–" : percent(slot.coverage)),
          cell("soft", describeSlot(slot)),
        ),
      ),
  );
}
