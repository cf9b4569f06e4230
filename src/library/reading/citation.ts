import { createHash } from "node:crypto";
import { usageFailure } from "../../model/failure.ts";
import { formatTimestamp, type Micros, parseTimestamp } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { citeState } from "../../warehouse/tables/known-at.ts";
import type { BarSource } from "../rows.ts";
import { readAsOf } from "./as-of-reader.ts";
import { createBarGrid } from "./bar-grid.ts";
import { readBars } from "./bar-reader.ts";
import { findMissing } from "./completeness.ts";
import { readMoments } from "./read-plan.ts";
import {
  type BarPlan,
  type KeyedSeries,
  type MomentPlan,
  resolveSeries,
  type SourcedSeries,
  type TickPlan,
  withSource,
} from "./series-names.ts";
import { readTickRows } from "./tick-reader.ts";
import { findTimeZone, utcZone } from "./time-zone.ts";

/* One line that says what was asked, and a digest of the exact values: docs/research.md has its format. */

/** What was asked, in terms that mean the same in every warehouse of the service. */
export interface Question {
  readonly kind: "bars" | "ticks" | "asof";
  /** For people. */
  readonly names: readonly string[];
  /** By the ids of the service: names may change. */
  readonly ids: readonly string[];
  /** One for all, or one for each. */
  readonly sources: readonly BarSource[];
  readonly of?: string | undefined;
  /** The id of the series in whose price those of the others are. */
  readonly over?: string | undefined;
  readonly every?: string | undefined;
  readonly tz?: string | undefined;
  readonly from?: Micros | undefined;
  readonly to?: Micros | undefined;
  /** Of `asof`: the moments, or a time of day. */
  readonly at?: readonly Micros[] | string | undefined;
  /** The present of an earlier state, by the service's clock. */
  readonly knownAt?: Micros | undefined;
}

export interface Citation extends Question {
  readonly rows: number;
  readonly isComplete: boolean;
  readonly sha256: string;
  /** The beginnings of the digests of the first rows: see `markStep`. */
  readonly marks: readonly string[];
  /** The state that was read. */
  readonly state: string;
}

/** A line of the canonical text, and the time whose records decide it. */
export interface CitedRow extends TimeRange, SourcedSeries {
  readonly ts: Micros;
  readonly text: string;
  readonly isComplete: boolean;
}

const MAX_MARKS = 32;
const MARK_DIGITS = 4;
const MAX_MOMENTS = 32;

/** After how many rows there is another mark, so that a check finds where the first difference is. */
export function markStep(rows: number): number {
  let step = 1;
  while (rows / step >= MAX_MARKS + 1) step *= 2;
  return step;
}

/** What a question does not take from the plans. */
export interface AskOptions extends Pick<Question, "of" | "every" | "tz"> {
  readonly running?: boolean;
  readonly requireComplete?: boolean;
}

/** The question that plans answer. */
export function toQuestion(
  connection: Connection,
  plans: readonly (TickPlan | MomentPlan)[],
  asked: AskOptions,
): Question {
  const ofMoments = plans.filter((plan) => "moments" in plan);
  if (ofMoments[0]) return askMoments(connection, ofMoments, ofMoments[0], asked);
  return askRange(connection, plans as readonly TickPlan[], asked);
}

/** What is not over yet is left out: the answer would change. */
function askRange(
  connection: Connection,
  plans: readonly (TickPlan & Partial<BarPlan>)[],
  asked: AskOptions,
): Question {
  const { of, every, tz, running, requireComplete } = asked;
  if (running) throw usageFailure("a bar in progress cannot be cited", "leave out --running");
  const present = readPresentTs(connection);
  const grid = plans[0]?.grid;
  const froms = new Set(plans.map(({ range }) => range.from));
  if (requireComplete && froms.size > 1)
    throw usageFailure("the series begin at several times", "give the start of what is cited with --from");
  const over = grid ? grid.startOf(present) : present;
  return {
    ...questionOf(connection, plans),
    ...{ kind: grid ? "bars" : "ticks", of, every, tz: grid && tz },
    from: Math.min(...froms),
    to: Math.min(over, Math.max(...plans.map(({ range }) => range.to))),
  };
}

function askMoments(
  connection: Connection,
  all: readonly SourcedSeries[],
  { moments, schedule }: MomentPlan,
  { of, tz }: AskOptions,
): Question {
  const question = { ...questionOf(connection, all), kind: "asof" as const, of };
  const [from, last] = [moments[0], moments.at(-1)];
  if (schedule !== undefined && from !== undefined && last !== undefined)
    return { ...question, tz, at: schedule, from, to: last + 1 };
  if (moments.length > MAX_MOMENTS)
    throw usageFailure(
      `a citation has at most ${MAX_MOMENTS} moments`,
      "cite a part of them, or one a day with --at",
    );
  return { ...question, at: moments };
}

function questionOf(connection: Connection, all: readonly SourcedSeries[]) {
  const sources = all.map(({ source }) => source);
  return {
    names: all.map(({ series }) => series.name),
    ids: all.map(({ series }) => addressOf(series)),
    over: all[0]?.series.over && addressOf(all[0].series.over),
    sources: new Set(sources).size === 1 ? sources.slice(0, 1) : sources,
    knownAt: connection.knownAt?.present,
  };
}

function addressOf({ stream, index_type, index_id }: KeyedSeries): string {
  return stream === "index_ticks" ? `${index_type}:${index_id}` : index_id;
}

/** The series of a question, each with where its rows are from. */
export function resolveAsked(connection: Connection, { ids, sources, of, over }: Question) {
  return resolveSeries(connection, ids, { of, over }).map((series, n) =>
    withSource(series, sources[n] ?? sources[0] ?? "ticks"),
  );
}

/** The lines of the canonical text. Call it in a read transaction. */
export function* readCitedRows(connection: Connection, question: Question): Generator<CitedRow> {
  const { kind, every, tz, from = 0, to = 0, at } = question;
  const zone = findTimeZone(tz);
  const grid = createBarGrid(every ?? "1d", zone);
  const asked = typeof at === "string" ? { at, from, to } : (at ?? []);
  const moments = kind === "asof" ? readMoments(asked, readPresentTs(connection), zone) : [];
  for (const sourced of resolveAsked(connection, question)) {
    const { series } = sourced;
    const plan = { ...sourced, range: { from, to }, grid, zone, moments };
    const cited = (
      ts: Micros,
      range: TimeRange,
      isComplete: 0 | 1,
      values: readonly (string | number | null)[],
    ) => {
      const text = `${[addressOf(series), ts, ...values.map((value) => value ?? "")].join(",")}\n`;
      return { ...sourced, ts, ...range, text, isComplete: isComplete === 1 };
    };
    if (kind === "ticks")
      for (const row of readTickRows(connection, { ...plan, zone: utcZone })) {
        const values = [row.price_exact, row.volume_exact, row.tick_volume_exact];
        yield cited(row.ts, { from: row.ts, to: row.ts + 1 }, row.is_settled, values);
      }
    else if (kind === "bars")
      for (const row of readBars(connection, plan)) {
        const prices = [row.open_exact, row.high_exact, row.low_exact, row.close_exact];
        const values = [...prices, row.volume_24h_exact, row.n_ticks];
        yield cited(row.ts, { from: row.ts, to: grid.endOf(row.ts) }, row.is_complete, values);
      }
    else
      for (const row of readAsOf(connection, plan)) {
        const range = { from: row.ts ?? row.at_ts, to: row.at_ts + 1 };
        yield cited(row.at_ts, range, row.is_complete, [row.ts, row.price_exact, row.volume_exact]);
      }
  }
}

/** A mark: the digest of all rows up to one, and the rows since the mark before. */
interface DigestMark {
  readonly text: string;
  readonly first: CitedRow;
  readonly last: CitedRow;
}

/** `step`: after how many rows there is a mark. Default: as a citation of so many rows has them. */
function digestRows(rows: Iterable<CitedRow>, step?: number) {
  const hash = createHash("sha256");
  let marks: DigestMark[] = [];
  let count = 0;
  let every = step ?? 1;
  let first: CitedRow | undefined;
  let last: CitedRow | undefined;
  let isComplete = true;
  for (const row of rows) {
    hash.update(row.text);
    first ??= row;
    last = row;
    isComplete &&= row.isComplete;
    if (++count % every !== 0) continue;
    marks.push({ text: hash.copy().digest("hex").slice(0, MARK_DIGITS), first, last });
    first = undefined;
    if (step !== undefined || marks.length <= MAX_MARKS) continue;
    marks = marks.filter((_, at) => at % 2 === 1);
    every *= 2;
  }
  return { rows: count, sha256: hash.digest("hex"), marks, isComplete, first, last };
}

/** Answers the question in the state that the connection shows. Call it in a read transaction. */
export function answer(connection: Connection, question: Question, step?: number) {
  const digest = digestRows(readCitedRows(connection, question), step);
  if (question.kind === "asof") return digest;
  const { from = 0, to = 0 } = question;
  const missing = findMissing(connection, resolveAsked(connection, question), { from, to });
  return { ...digest, isComplete: from < to && missing.length === 0 };
}

/** The line that cites the answer. */
export function cite(connection: Connection, question: Question): string {
  const { marks, ...digest } = answer(connection, question);
  const texts = marks.map(({ text }) => text);
  return formatCitation({ ...question, ...digest, marks: texts, state: citeState(connection) });
}

const VERSION = "mds1";

/* A name may contain what separates words. */
const encode = (text: string) => text.replace(/[\s,%]/g, encodeURIComponent);
const toList = (texts: readonly string[]) => texts.map(encode).join(",");

export function formatCitation(citation: Citation): string {
  const { kind, names, ids, sources, of, over, every, tz, from, to, at, knownAt } = citation;
  const time = (ts: Micros | undefined) => (ts === undefined ? undefined : formatTimestamp(ts));
  const words: Readonly<Record<string, string | number | undefined>> = {
    ...{ ids: toList(ids), source: sources.join(","), of, over, every, tz, from: time(from), to: time(to) },
    at: typeof at === "string" ? at : at?.map(formatTimestamp).join(","),
    "known-at": time(knownAt),
    rows: citation.rows,
    complete: citation.isComplete ? "yes" : "no",
    sha256: citation.sha256,
    marks: citation.marks.join("") || undefined,
    state: citation.state,
  };
  const written = Object.entries(words).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  return [VERSION, kind, toList(names), ...written].join(" ");
}

/** Reads the line wherever it stands in a text. Throws a Failure if something is missing. */
export function parseCitation(text: string): Citation {
  const words = text.trim().split(/\s+/);
  const start = words.indexOf(VERSION);
  const [kind, names = "", ...others] = words.slice(start + 1);
  const given = new Map(
    others.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]),
  );
  const list = (value: string | undefined) => (value ? value.split(",").map(decodeURIComponent) : []);
  const time = (value: string | undefined) => (value === undefined ? undefined : parseTimestamp(value));
  const [at, sha256 = "", state = ""] = [given.get("at"), given.get("sha256"), given.get("state")];
  const [rows, ids] = [Number(given.get("rows") ?? Number.NaN), list(given.get("ids"))];
  const [from, to, every] = [time(given.get("from")), time(given.get("to")), given.get("every")];
  const hasRange = from !== undefined && to !== undefined;
  const isKind = kind === "bars" || kind === "ticks" || kind === "asof";
  const isWhole = kind === "asof" ? at !== undefined : hasRange && (kind === "ticks" || every !== undefined);
  const isDigest = Number.isSafeInteger(rows) && /^[0-9a-f]{64}$/.test(sha256);
  if (start < 0 || !isKind || ids.length === 0 || !isDigest || !isWhole)
    throw usageFailure("that is no whole citation", "give the line as --cite printed it, from mds1 on");
  return {
    ...{ kind, names: list(names), ids, of: given.get("of"), over: given.get("over"), every },
    ...{ tz: given.get("tz"), from, to, knownAt: time(given.get("known-at")), rows, sha256, state },
    sources: list(given.get("source")) as readonly BarSource[],
    at: at?.includes("T") ? at.split(",").map((each) => time(each) ?? 0) : at,
    isComplete: given.get("complete") === "yes",
    marks: given.get("marks")?.match(new RegExp(`.{${MARK_DIGITS}}`, "g")) ?? [],
  };
}
