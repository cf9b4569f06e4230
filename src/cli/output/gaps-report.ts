import type { TimeZone } from "../../library/reading/time-zone.ts";
import {
  describeConfirmations,
  type GapRow,
  gapStates,
  SETTLING_REASON,
} from "../../model/status/gap-state.ts";
import {
  formatMoment,
  formatTimestamp,
  MICROS_PER_SECOND,
  type Micros,
  parseTimestamp,
} from "../../model/time.ts";
import type { LedgerKeySummary } from "../../warehouse/coverage/series-queries.ts";
import type { GapReport, ReportRange } from "../../warehouse/read/gap-report.ts";
import { formatAge, formatDuration, formatTable, NO_BREAK_SPACE, pluralize, wrapText } from "./text.ts";

type SeriesName = Pick<GapRow, "stream" | "index_type" | "index_id" | "name">;
type Label = (key: SeriesName) => string;

/** How both reports name series and moments, and what they say about heads. */
type Wording = ReturnType<typeof wordingOf>;

/** Lists every gap under its series. Heads that are only not confirmed yet are counted, not listed. */
export function formatGapList(report: GapReport, zone: TimeZone): string {
  const { gaps, keys, unresolved } = report;
  const wording = wordingOf(report, zone);
  const { label, listed, heads, confirmation } = wording;
  const unselected = keys.filter(({ firstTs }) => firstTs === null);
  const lead = listed.length > 0 ? "In addition," : "Nothing is missing:";
  const closing = [
    ...unresolved.map((selector) => `Unknown series: ${selector}.`),
    ...unselected.map((key) => `${label(key)} is not synced: the settings do not select it.`),
    ...(listed.length > 0 ? [`${summarizeGaps(listed)}.`] : []),
    ...confirmation,
    ...nextExpiry(listed, wording),
    ...(heads > 0 ? [`${lead} ${countHeads(heads)} (${SETTLING_REASON}).`] : []),
  ];
  if (keys.length === 0) closing.push("No stream with a history is synced yet.");
  else if (gaps.length + unresolved.length === 0 && unselected.length < keys.length)
    closing.push("Nothing is missing.");
  return [...formatBlocks(listed, wording), ...closing.map((line) => wrapText(line))].join("\n");
}

/** Reports whether the range is complete, and which gaps it has. `confirmEvery`: how often heads are confirmed, in seconds. */
export function formatRangeReport(
  report: GapReport,
  range: ReportRange,
  confirmEvery: number,
  zone: TimeZone,
): string {
  const { gaps, keys, outsideRange, unresolved } = report;
  const wording = wordingOf(report, zone);
  const { label, heads, confirmation } = wording;
  const what = describeRange(range, wording);
  const closing = outsideRange.map((key) => `Nothing is known about ${label(key)} in ${what}.`);
  if (keys.length === 0) closing.push(`Not complete: nothing is known about ${what}.`);
  else if (gaps.length + closing.length === 0) {
    const verdict = unresolved.length === 0 ? "Complete:" : "Not complete, although";
    closing.push(`${verdict} every second of ${describeKeys(keys, label)} in ${what} is covered.`);
  } else {
    const incomplete = new Set([...gaps, ...outsideRange].map(label)).size;
    const isStored = outsideRange.length === 0 && gaps.every(({ state }) => state === "unconfirmed");
    const verdict = isStored
      ? "Not proven yet, though all that the service has shown is stored"
      : "Not complete";
    closing.push(
      `${verdict}: ${summarizeGaps(gaps)} in ${what}, in ${incomplete} of ${pluralize(keys.length, "series", "series")}.`,
      ...confirmation,
      ...(heads > 0
        ? [
            `${countHeads(heads)}: a running daemon confirms it within ${formatDuration(confirmEvery)}, or else the next backfill.`,
          ]
        : []),
      ...nextExpiry(gaps, wording),
    );
  }
  closing.push(...unresolved.map((selector) => `Unknown series: ${selector}.`));
  return [...formatBlocks(gaps, wording), ...closing.map((line) => wrapText(line))].join("\n");
}

function wordingOf({ gaps, keys, confirmations, now }: GapReport, zone: TimeZone) {
  const listed = gaps.filter(({ reason }) => reason !== SETTLING_REASON);
  const confirmation = describeConfirmations(confirmations, formatTimestamp(now), false);
  return {
    now,
    label: labelFor(keys),
    moment: (ts: Micros) => formatMoment(zone.format(ts)),
    listed,
    heads: gaps.length - listed.length,
    confirmation: confirmation ? [`${confirmation}.`] : [],
  };
}

function formatBlocks(gaps: readonly GapRow[], { label, now, moment }: Wording): string[] {
  const table = formatTable(
    gaps.map((gap) => [
      ` ${moment(gap.from_ts)}`,
      moment(gap.to_ts),
      formatDuration((gap.to_ts - gap.from_ts) / MICROS_PER_SECOND),
      gap.state,
      [gap.reason, ...expiryRemark(gap, now)].join(", "),
    ]),
    ["left", "left", "right", "left", "left"],
  ).split("\n");
  let heading = "";
  const lines = gaps.flatMap((gap, row) => {
    const line = table[row] ?? "";
    if (label(gap) === heading) return [line];
    heading = label(gap);
    return [heading, line];
  });
  return lines.length > 0 ? [...lines, ""] : [];
}

function expiryRemark({ lost_at }: GapRow, now: Micros): string[] {
  const lostAt = lost_at === null ? undefined : parseTimestamp(lost_at);
  return lostAt === undefined ? [] : [`lost in ${formatAge((lostAt - now) / MICROS_PER_SECOND)}`];
}

/** Names the open gap that leaves the service's window next. */
function nextExpiry(gaps: readonly GapRow[], { label, now, moment }: Wording): string[] {
  const [next] = gaps
    .filter(({ lost_at }) => lost_at !== null)
    .sort((a, b) => ((a.lost_at ?? "") < (b.lost_at ?? "") ? -1 : 1));
  const lostAt = parseTimestamp(next?.lost_at ?? "");
  if (!next || lostAt === undefined) return [];
  const time = formatDuration((lostAt - now) / MICROS_PER_SECOND);
  return [
    `The next gap to leave the service's window is ${label(next)} from ${unbroken(moment(next.from_ts))}, in ${time}.`,
  ];
}

function summarizeGaps(gaps: readonly GapRow[]): string {
  const parts = gapStates.flatMap((state) => {
    const matching = gaps.filter((gap) => gap.state === state);
    if (matching.length === 0) return [];
    // The sum over several series would be thousands of days.
    const longest =
      matching.reduce((most, { from_ts, to_ts }) => Math.max(most, to_ts - from_ts), 0) / MICROS_PER_SECOND;
    const which = matching.length > 1 ? "the longest " : "";
    return [`${pluralize(matching.length, "range")} ${state} (${which}${formatDuration(longest)})`];
  });
  return parts.length > 0 ? parts.join(", ") : "nothing known";
}

const countHeads = (heads: number) => pluralize(heads, "head not confirmed yet", "heads not confirmed yet");

/** `index_ticks GWA BTC`, with the id where several series share the name; a stream without series has no name. */
function labelFor(keys: readonly LedgerKeySummary[]): Label {
  const plain = ({ stream, index_type, index_id, name }: SeriesName) =>
    [stream, index_type, name ?? index_id ?? "(all)"].filter((part) => part !== null).join(" ");
  const byLabel = Map.groupBy(keys, plain);
  return (key) =>
    (byLabel.get(plain(key))?.length ?? 0) > 1 ? `${plain(key)} (${key.index_id})` : plain(key);
}

function describeKeys(keys: readonly LedgerKeySummary[], label: Label): string {
  const [first] = keys;
  if (keys.length === 1 && first) return label(first);
  const streams = [...Map.groupBy(keys, ({ stream }) => stream)];
  return streams
    .map(([stream, streamKeys]) => `${stream} (${pluralize(streamKeys.length, "series", "series")})`)
    .join(" and ");
}

function describeRange({ from, to }: ReportRange, { moment }: Wording): string {
  if (from === undefined) return `all before ${unbroken(moment(to ?? 0))}`;
  return to === undefined
    ? `all since ${unbroken(moment(from))}`
    : `[${unbroken(moment(from))}, ${unbroken(moment(to))})`;
}

/** For sentences: a line must not break inside a timestamp. */
const unbroken = (moment: string) => moment.replace(" ", NO_BREAK_SPACE);
