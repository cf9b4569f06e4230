// What the chart draws, made of what the daemon says. Pure: nothing here knows of the page.

export const widths = { "1m": 60, "5m": 300, "15m": 900, "1h": 3_600, "4h": 14_400, "1d": 86_400 };
export const MOST_BARS = 5_000;

/** A bar as the daemon sends it, with names. */
function barOf([time, open, high, low, close, ticks, expected, coverage, isComplete]) {
  return { time, open, high, low, close, ticks, expected, coverage, isComplete: isComplete === 1 };
}

/** Stretches in which a bar can be without anything being wrong with it. */
const calm = ["settling"];

/**
 * One slot for each bar that there could be, in order and without exception, so that a missing bar leaves room of its own
 * width. What nobody asked for is left out at the beginning, where it would be nothing but blank.
 */
export function slots({ from, to, width, bars, spans }) {
  const length = widths[width];
  const [first] = spans;
  const unasked = first?.state === "none" && first.from <= from ? first.to : from;
  const start = Math.min(Math.floor(unasked / length) * length, bars[0]?.[0] ?? Number.POSITIVE_INFINITY);
  const known = new Map(bars.map((bar) => [bar[0], barOf(bar)]));
  const made = [];
  for (let time = Math.max(from, start); time < to; time += length) {
    const span = worstSpan(spans, time, time + length);
    made.push({ time, ...known.get(time), span });
  }
  return made;
}

const order = ["lost", "open", "empty", "none", "settling"];

/** The span that matters most of those that touch a bar; undefined where the bar is proven whole. */
function worstSpan(spans, from, to) {
  let worst;
  // The list is ascending: a binary search for the first that ends after the bar's beginning.
  let low = 0;
  for (let high = spans.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (spans[middle].to <= from) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < spans.length && spans[i].from < to; i++) {
    if (!worst || order.indexOf(spans[i].state) < order.indexOf(worst.state)) worst = spans[i];
  }
  return worst;
}

/** Adds a newer answer about the end of the range to what is known. */
export function merge(known, tail) {
  const older = (range) => range.to <= tail.from;
  const cut = known.spans.filter((span) => span.from < tail.from);
  return {
    ...known,
    to: Math.max(known.to, tail.to),
    bars: [...known.bars.filter(([time]) => time < tail.from), ...tail.bars],
    spans: joined([...cut.map((span) => (older(span) ? span : { ...span, to: tail.from })), ...tail.spans]),
  };
}

/** What was cut at the seam is one again. */
function joined(spans) {
  const whole = [];
  for (const span of spans) {
    const last = whole.at(-1);
    if (last && last.to === span.from && last.state === span.state && last.reason === span.reason)
      whole[whole.length - 1] = { ...last, to: span.to };
    else whole.push(span);
  }
  return whole;
}

/** `whole`; `settling`: only awaits its confirmation; `partial`: something of it is missing; `missing`: all of it is. */
export function stateOf(slot) {
  if (slot.close === undefined || slot.close === null) return "missing";
  if (slot.isComplete) return "whole";
  return slot.span && calm.includes(slot.span.state) ? "settling" : "partial";
}

/** How many digits of the fraction matter: five or so that tell one price from the next. */
export function precisionOf(bars) {
  const prices = bars.flatMap(([, , high]) => (high > 0 ? [high] : []));
  const highest = prices.reduce((most, price) => Math.max(most, price), 0);
  if (highest === 0) return 2;
  return Math.min(12, Math.max(2, 5 - Math.ceil(Math.log10(highest))));
}

/** Those that a person would want to read about: not the head that is as it should be, nor what nobody asked for. */
export function gapsOf(spans) {
  return spans.filter(({ state }) => state === "open" || state === "lost" || state === "empty");
}
