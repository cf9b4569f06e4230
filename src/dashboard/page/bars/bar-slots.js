// Converts the daemon's bars into the slots of the chart. Pure functions without access to the page.

export const widths = { "1m": 60, "5m": 300, "15m": 900, "1h": 3_600, "4h": 14_400, "1d": 86_400 };
export const MAX_BARS = 5_000;

/** The daemon sends a bar as an array. */
function parseBar([time, open, high, low, close, ticks, expected, coverage, isComplete, volume = null]) {
  return { time, open, high, low, close, ticks, expected, coverage, isComplete: isComplete === 1, volume };
}

/** In spans of these states an incomplete bar is normal. */
const NORMAL_STATES = ["settling"];

/**
 * Returns one slot per possible bar, in order, so that a missing bar leaves a gap of its own width. A range at the start that
 * is not selected is left out, because it would be blank.
 */
export function buildSlots({ from, to, width, bars, spans }) {
  const length = widths[width];
  const [first] = spans;
  const selectedFrom = first?.state === "none" && first.from <= from ? first.to : from;
  const start = Math.min(
    Math.floor(selectedFrom / length) * length,
    bars[0]?.[0] ?? Number.POSITIVE_INFINITY,
  );
  const byTime = new Map(bars.map((bar) => [bar[0], parseBar(bar)]));
  const result = [];
  for (let time = Math.max(from, start); time < to; time += length) {
    const span = worstSpan(spans, time, time + length);
    result.push({ time, ...byTime.get(time), span });
  }
  return result;
}

const SEVERITY = ["lost", "open", "empty", "none", "settling"];

/** The worst span that overlaps a bar; undefined if the bar is proven complete. */
function worstSpan(spans, from, to) {
  let worst;
  // Binary search in the ascending list for the first span that ends after the bar's start.
  let low = 0;
  for (let high = spans.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (spans[middle].to <= from) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < spans.length && spans[i].from < to; i++) {
    if (!worst || SEVERITY.indexOf(spans[i].state) < SEVERITY.indexOf(worst.state)) worst = spans[i];
  }
  return worst;
}

/** Replaces the end of the loaded range by a newer response. */
export function merge(loaded, tail) {
  const isOlder = (range) => range.to <= tail.from;
  const earlier = loaded.spans.filter((span) => span.from < tail.from);
  return {
    ...loaded,
    to: Math.max(loaded.to, tail.to),
    bars: [...loaded.bars.filter(([time]) => time < tail.from), ...tail.bars],
    spans: joinSpans([
      ...earlier.map((span) => (isOlder(span) ? span : { ...span, to: tail.from })),
      ...tail.spans,
    ]),
  };
}

/** Joins spans that `merge` has cut in two. */
function joinSpans(spans) {
  const result = [];
  for (const span of spans) {
    const last = result.at(-1);
    if (last && last.to === span.from && last.state === span.state && last.reason === span.reason)
      result[result.length - 1] = { ...last, to: span.to };
    else result.push(span);
  }
  return result;
}

/** `complete`; `settling`: only awaits confirmation; `partial`: a part is missing; `missing`: all of it is missing. */
export function stateOf(slot) {
  if (slot.close === undefined || slot.close === null) return "missing";
  if (slot.isComplete) return "complete";
  return slot.span && NORMAL_STATES.includes(slot.span.state) ? "settling" : "partial";
}

/** The number of fraction digits to show: about five significant digits. */
export function precisionOf(bars) {
  const prices = bars.flatMap(([, , high]) => (high > 0 ? [high] : []));
  const highest = prices.reduce((most, price) => Math.max(most, price), 0);
  if (highest === 0) return 2;
  return Math.min(12, Math.max(2, 5 - Math.ceil(Math.log10(highest))));
}

/** The spans to list: not the settling head, and not what is not selected. */
export function listGaps(spans) {
  return spans.filter(({ state }) => state === "open" || state === "lost" || state === "empty");
}
