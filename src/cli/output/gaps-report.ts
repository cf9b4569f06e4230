import { formatInstant, MICROS_PER_SECOND, type Micros, parseInstant } from "../../model/time.ts";
import type { AskedLine, GapRow, Missing, Window } from "../../warehouse/read/gap-report.ts";
import { counted, durationText, FIXED_BLANK, textTable, wrapped } from "./text.ts";

type Named = Pick<GapRow, "stream" | "index_type" | "index_id" | "name">;
type Label = (line: Named) => string;

/** Every missing range, under the series that it belongs to. Heads that only await confirmation are counted, not listed. */
export function listReport({ gaps, lines, now }: Missing): string {
  const label = labelsOf(lines);
  const settling = gaps.filter(({ reason }) => reason === "settling");
  const listed = gaps.filter(({ reason }) => reason !== "settling");
  const strangers = lines.filter(({ first }) => first === null);
  const closing = [
    ...strangers.map((line) => `${label(line)} is not followed: the settings do not select it.`),
    ...(listed.length > 0 ? [`${sumText(listed)}.`] : []),
    ...expiry(listed, label, now),
    ...(settling.length > 0 ? [settlingText(settling.length, listed.length)] : []),
  ];
  if (lines.length === 0) closing.push("Nothing with a history is followed yet.");
  else if (gaps.length === 0 && strangers.length < lines.length) closing.push("Nothing is missing.");
  return [...blocks(listed, label, now), ...closing.map((line) => wrapped(line))].join("\n");
}

/** Whether the window is whole, and what is missing from it. */
export function windowReport({ gaps, lines, outside, now }: Missing, window: Window): string {
  const label = labelsOf(lines);
  const what = windowText(window);
  const closing = outside.map((line) => `Nothing is known about ${label(line)} in ${what}.`);
  if (lines.length === 0) closing.push(`Not whole: nothing is known about ${what}.`);
  else if (gaps.length + closing.length === 0) {
    closing.push(`Whole: every second of ${linesText(lines, label)} in ${what} is covered.`);
  } else {
    const hurt = new Set([...gaps, ...outside].map(label)).size;
    closing.push(
      `Not whole: ${sumText(gaps)} in ${what}, in ${hurt} of ${counted(lines.length, "series", "series")}.`,
      ...expiry(gaps, label, now),
    );
  }
  return [...blocks(gaps, label, now), ...closing.map((line) => wrapped(line))].join("\n");
}

function blocks(gaps: readonly GapRow[], label: Label, now: Micros): string[] {
  const table = textTable(
    gaps.map((gap) => [
      ` ${secondText(gap.from_ts)}`,
      secondText(gap.to_ts),
      durationText((gap.to_ts - gap.from_ts) / MICROS_PER_SECOND),
      gap.state,
      [gap.reason, ...leaving(gap, now)].join(", "),
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

function leaving({ lost_at }: GapRow, now: Micros): string[] {
  const left = lost_at === null ? undefined : parseInstant(lost_at);
  return left === undefined
    ? []
    : [`lost in ${durationText((left - now) / MICROS_PER_SECOND).split(" ")[0]}`];
}

/** The range that is the next to be out of reach. */
function expiry(gaps: readonly GapRow[], label: Label, now: Micros): string[] {
  const [next] = gaps
    .filter(({ lost_at }) => lost_at !== null)
    .sort((a, b) => ((a.lost_at ?? "") < (b.lost_at ?? "") ? -1 : 1));
  const left = parseInstant(next?.lost_at ?? "");
  if (!next || left === undefined) return [];
  const time = durationText((left - now) / MICROS_PER_SECOND);
  return [
    `The next to leave the service's window is ${label(next)} from ${fixed(next.from_ts)}, in ${time}.`,
  ];
}

function sumText(gaps: readonly GapRow[]): string {
  const parts = (["open", "lost"] as const).flatMap((state) => {
    const of = gaps.filter((gap) => gap.state === state);
    const seconds = of.reduce((sum, { from_ts, to_ts }) => sum + to_ts - from_ts, 0) / MICROS_PER_SECOND;
    return of.length > 0 ? [`${counted(of.length, "range")} ${state} (${durationText(seconds)})`] : [];
  });
  return parts.length > 0 ? parts.join(", ") : "nothing known";
}

function settlingText(heads: number, listed: number): string {
  const what = counted(
    heads,
    "head that only awaits its confirmation",
    "heads that only await their confirmation",
  );
  return listed > 0 ? `Besides, ${what} (settling).` : `Nothing is missing but ${what} (settling).`;
}

/** `index_ticks GWA BTC`, with the id where several share the name; a subscription to everything has no name. */
function labelsOf(lines: readonly AskedLine[]): Label {
  const plain = ({ stream, index_type, index_id, name }: Named) =>
    [stream, index_type, name ?? index_id ?? "(all)"].filter((part) => part !== null).join(" ");
  const shared = Map.groupBy(lines, plain);
  return (line) =>
    (shared.get(plain(line))?.length ?? 0) > 1 ? `${plain(line)} (${line.index_id})` : plain(line);
}

function linesText(lines: readonly AskedLine[], label: Label): string {
  const [first] = lines;
  if (lines.length === 1 && first) return label(first);
  const streams = [...Map.groupBy(lines, ({ stream }) => stream)];
  return streams.map(([stream, of]) => `${stream} (${counted(of.length, "series", "series")})`).join(" and ");
}

function windowText({ from, to }: Window): string {
  if (from === undefined) return `all before ${fixed(to ?? 0)}`;
  return to === undefined ? `all since ${fixed(from)}` : `[${fixed(from)}, ${fixed(to)})`;
}

function secondText(moment: Micros): string {
  return formatInstant(moment).slice(0, 19).replace("T", " ");
}

/** For sentences: a moment is not broken at the end of a line. */
function fixed(moment: Micros): string {
  return secondText(moment).replace(" ", FIXED_BLANK);
}
