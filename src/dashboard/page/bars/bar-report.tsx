// What the page says about the bars in words: the bar under the pointer, the gaps, the newest bars as a table.

import type { ChartBarsResult, ChartRange, SecondsRange } from "../../../model/answers/chart-bars.ts";
import { type DataColumn, DataTable } from "../shared/data-table.tsx";
import { Mark } from "../shared/page.tsx";
import { amount, count, countNoun, direction, percentChange, price, title } from "../shared/text-format.ts";
import { duration, momentText } from "../shared/time-format.ts";
import { listGaps, type Slot, stateOf } from "./bar-slots.ts";

const TABLE_ROWS = 200;
const GAPS_SHOWN = 12;

export type ShownBars = ChartBarsResult & { readonly slots: readonly Slot[]; readonly precision: number };

const utcText = (seconds: number, digits = 16) =>
  new Date(seconds * 1000).toISOString().slice(0, digits).replace("T", " ");

/** The change since the close of the bar before, as exchanges count it. */
function changeOf(slots: readonly Slot[], slot: Slot): number | undefined {
  const before = slots.slice(0, slots.indexOf(slot)).findLast(({ candle }) => candle)?.candle;
  return slot.candle && before ? slot.candle.close - before.close : undefined;
}

const Figure = ({ label, text }: { label: string; text: string }) => (
  <span>
    <span class="faint">{label}</span> {text}
  </span>
);

/** Describes the bar under the pointer, else the newest bar. */
export function BarDetails({ bars, at }: { bars: ShownBars; at: number | undefined }) {
  const { slots, precision } = bars;
  const pointed = slots.find(({ time }) => time === at);
  const slot = pointed ?? slots.findLast(({ candle }) => candle) ?? slots.at(-1);
  if (!slot) return null;
  const digits = (value: number) => price(value.toFixed(precision));
  const when = slot.isDaily ? `${utcText(slot.time, 10)} UTC` : momentText(slot.time * 1e6, 16);
  const { candle, ticks = 0, expected = 0, volume = null } = slot;
  const change = changeOf(slots, slot);
  const { open: O, high: H, low: L, close: C } = candle ?? {};
  return (
    <>
      <span class="when">{when}</span>
      {Object.entries({ O, H, L, C }).map(
        ([label, value]) => value !== undefined && <Figure key={label} label={label} text={digits(value)} />,
      )}
      {candle && change !== undefined && (
        <span class={`change ${direction(change)}`}>
          {`${change < 0 ? "−" : "+"}${digits(Math.abs(change))} (${percentChange((change / (candle.close - change)) * 100)})`}
        </span>
      )}
      {candle && <Figure label={slot.isDaily ? "V" : "V 24 h"} text={amount(volume)} />}
      {candle && <span>{ticks === null ? "daily bar" : tickCount(ticks, expected)}</span>}
      <span class={/partial|missing/.test(stateOf(slot)) ? "alert" : "faint"}>{describeSlot(slot)}</span>
    </>
  );
}

/** Bars may be shorter than the period of a ticker. */
const tickCount = (ticks: number, expected: number) =>
  expected > 0 ? `${count(ticks)} of ${count(expected)} ticks` : countNoun(ticks, "tick");

function describeSlot(slot: Slot): string {
  const { span, coverage = 0, isDaily } = slot;
  const what = span && isDaily && span.stream === "index_ticks" ? "ticks " : "";
  const isSaid = span?.state === "none" || span?.state === "unconfirmed";
  const reason = span ? ` (${what}${isSaid ? "" : `${span.state}, `}${span.reason})` : "";
  const proven = `${percent(coverage)} proven`;
  return {
    complete: `complete${what ? reason : ""}`,
    unconfirmed: coverage > 0 ? `${proven}, the rest awaits confirmation` : "awaits confirmation",
    partial: coverage < 1 ? `${proven}${reason}` : "in progress",
    missing: `no bar${reason}`,
  }[stateOf(slot)];
}

/** Shows 100 % only for a complete bar. */
const percent = (fraction: number) => `${fraction >= 1 ? 100 : Math.min(99, Math.floor(fraction * 100))} %`;

/** Short ranges with seconds; the date of the end is omitted if it equals that of the start. */
function formatRange(from: number, to: number): string {
  const digits = to - from < 3_600 ? 19 : 16;
  const [first, last] = [utcText(from, digits), utcText(to, digits)];
  return `${first} → ${first.slice(0, 10) === last.slice(0, 10) ? last.slice(11) : last}`;
}

function spansIn({ spans }: ShownBars, view: SecondsRange) {
  const visible = spans.filter(({ from, to }) => from < view.to && to > view.from);
  const cut = ({ from, to }: ChartRange) => ({ from: Math.max(from, view.from), to: Math.min(to, view.to) });
  return visible.map((whole) => ({ ...whole, whole, ...cut(whole) }));
}
type SpanInView = ReturnType<typeof spansIn>[number];

export function describeGaps(bars: ShownBars, view: SecondsRange): string {
  const gaps = listGaps(spansIn(bars, view));
  const total = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const more = gaps.length > GAPS_SHOWN ? `, the newest ${GAPS_SHOWN} are shown` : "";
  return gaps.length > 0 ? `${countNoun(gaps.length, "range")}, ${duration(total)}${more}` : "";
}

const gapColumns = (hrefOf: (gap: SecondsRange) => string): readonly DataColumn<SpanInView>[] => [
  {
    label: "State",
    cell: ({ state, reason, stream }) => [
      <Mark key="mark" state={state} />,
      state,
      <span key="reason" class="soft">{` ${reason}${stream === "ohlcv" ? ", daily bars" : ""}`}</span>,
    ],
  },
  { label: "Length", value: ({ from, to }) => to - from, format: duration },
  {
    label: "Range (UTC)",
    cell: ({ from, to, whole }) => {
      const beyond = [whole.from < from ? "before" : "", whole.to > to ? "after" : ""].filter(Boolean);
      return (
        <>
          <a href={hrefOf(whole)}>{formatRange(from, to)}</a>
          {beyond.length > 0 && <span class="soft">{` goes on ${beyond.join(" and ")}`}</span>}
        </>
      );
    },
  },
];

/** `hrefOf` leads to the whole of a gap. */
type GapsProps = { bars: ShownBars; view: SecondsRange; hrefOf: (gap: SecondsRange) => string };

export function Gaps({ bars, view, hrefOf }: GapsProps) {
  const spans = spansIn(bars, view);
  return (
    <DataTable
      {...{ id: "gaps", label: "Gaps in view", columns: gapColumns(hrefOf) }}
      rows={listGaps(spans).toReversed().slice(0, GAPS_SHOWN)}
      empty={describeNoGaps(spans, bars.bars.length > 0)}
      attributes={({ state, stream, from }) => ({ key: `${stream} ${from}`, "data-state": state })}
    />
  );
}

/** What awaits confirmation or was never selected is not proven either. */
function describeNoGaps(spans: readonly ChartRange[], hasBars: boolean): string {
  const describe = (state: ChartRange["state"], name: string) => {
    const own = spans.filter((span) => span.state === state);
    const length = own.reduce((sum, { from, to }) => sum + to - from, 0);
    return length > 0 ? ` ${name}: ${duration(length)}.` : "";
  };
  const unselected = describe("none", "Not selected");
  if (unselected && !hasBars) return "Nothing in view is selected.";
  return `Nothing is missing.${describe("unconfirmed", "Awaiting confirmation")}${unselected}`;
}

const barColumns = (precision: number): readonly DataColumn<Slot>[] => {
  const part = (name: "open" | "high" | "low" | "close") => ({
    ...{ label: title(name), isWide: name !== "close", value: ({ candle }: Slot) => candle?.[name] },
    format: (value: number) => price(value.toFixed(precision)),
  });
  return [
    { label: "Start (UTC)", className: "wraps", cell: ({ time }) => utcText(time) },
    ...(["open", "high", "low", "close"] as const).map(part),
    { label: "Volume", field: "volume", format: amount },
    {
      ...{ label: "Ticks", isWide: true, className: "number" },
      cell: ({ ticks, expected = 0 }) =>
        ticks === undefined ? "–" : ticks === null ? "daily bar" : `${count(ticks)} / ${count(expected)}`,
    },
    { label: "Coverage", isWide: true, field: "coverage", format: percent },
    { label: "State", className: "soft", cell: describeSlot },
  ];
};

export function BarTable({ slots, precision }: ShownBars) {
  return (
    <DataTable
      {...{ id: "bars", label: "Bars", columns: barColumns(precision) }}
      rows={slots.slice(-TABLE_ROWS).toReversed()}
      attributes={(slot) => ({
        ...{ key: String(slot.time), "data-time": String(slot.time) },
        "data-state": stateOf(slot),
      })}
    />
  );
}
