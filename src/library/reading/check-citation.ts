import { formatTimestamp, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { withReader } from "../../warehouse/reader.ts";
import type { Connection, KnownAt } from "../../warehouse/sqlite/connection.ts";
import { findKnownAt, readMachineTs, readToken, showKnownAt } from "../../warehouse/tables/known-at.ts";
import { rowTables } from "../../warehouse/tables/row-tables.ts";
import type { CheckResult, Difference } from "../rows.ts";
import {
  answer,
  type Citation,
  type CitedRow,
  markStep,
  parseCitation,
  readCitedRows,
  resolveAsked,
} from "./citation.ts";
import { findMissing, withDivisors } from "./completeness.ts";

/** How many earlier states are tried for the one that was cited. */
const MAX_STATES = 20;

/** Recomputes a citation in a warehouse file. */
export function checkFile(path: string, text: string): CheckResult {
  const citation = parseCitation(text);
  return withReader(path, (newest) =>
    withReader(path, (past) => newest.database.transaction(() => checkCitation(newest, past, citation))()),
  );
}

/**
 * Recomputes a citation. It is equal if the rows are: whether they are complete may differ. `newest` shows the newest state, in
 * a transaction; `past` is for earlier states.
 */
function checkCitation(newest: Connection, past: Connection, citation: Citation): CheckResult {
  const step = markStep(citation.rows);
  const digestIn = (state: KnownAt | undefined) => {
    const connection = state ? past : newest;
    if (state) showKnownAt(past, state);
    return connection.database.transaction(() => answer(connection, citation, step))();
  };
  const cited = tryState(() => readToken(newest, citation.state));
  const present = citation.knownAt ?? stateTime(citation);
  const then = present === undefined ? undefined : tryState(() => findAtServiceTime(newest, present));
  // Without a moment the question is about the newest state.
  const asked = citation.knownAt === undefined ? undefined : (cited ?? then);
  let shown = asked;
  let here = digestIn(shown);
  if (here.sha256 !== citation.sha256 && shown) {
    const now = digestIn(undefined);
    if (now.sha256 === citation.sha256) [shown, here] = [undefined, now];
  }
  const result = {
    cited_rows: citation.rows,
    rows: here.rows,
    is_complete: here.isComplete ? 1 : 0,
  } as const;
  if (here.sha256 === citation.sha256) return { equal: true, ...result, difference: null };
  const others = [cited, then, ...findStates(newest, citation)].filter((state) => state !== undefined);
  const before = others.find((state) => digestIn(state).sha256 === citation.sha256);
  const isOther = before !== undefined && before.commit !== asked?.commit;
  const difference = isOther
    ? compareStates(newest, past, citation, before)
    : explain(newest, citation, here);
  return { equal: false, ...result, difference };
}

/** Undefined: the warehouse does not know the state. */
function tryState(find: () => KnownAt | undefined): KnownAt | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

function stateTime({ state }: Citation): Micros | undefined {
  const ts = Date.parse(state.split("@")[0] ?? "") * 1000;
  return Number.isNaN(ts) ? undefined : ts;
}

/** Commits are dated by the clock of the machine. */
function findAtServiceTime(connection: Connection, present: Micros): KnownAt {
  const skew = readPresentTs(connection) - readMachineTs(connection);
  return { ...findKnownAt(connection, Math.min(present - skew, readMachineTs(connection))), present };
}

/** The states before the newest revisions of what was asked. */
function findStates(connection: Connection, citation: Citation): KnownAt[] {
  const present = readPresentTs(connection);
  const range = spanOf(citation);
  const commits = withDivisors(resolveAsked(connection, citation)).flatMap(({ series, stream }) => {
    const { pastTable, keyColumn } = rowTables[stream];
    return connection.values<number>(
      `SELECT DISTINCT until FROM ${pastTable} WHERE ${keyColumn} = ? AND ts >= ? AND ts < ? AND revision > 0 AND until > 0
        ORDER BY until DESC LIMIT ${MAX_STATES}`,
      [series.key, range.from, range.to],
    );
  });
  const newest = [...new Set(commits)].sort((a, b) => b - a).slice(0, MAX_STATES);
  return newest.map((until) => ({ commit: until - 1, present }));
}

function spanOf({ from, to, at }: Citation): TimeRange {
  if (from !== undefined && to !== undefined) return { from, to };
  const moments = typeof at === "string" || at === undefined ? [] : at;
  return { from: Number.MIN_SAFE_INTEGER, to: Math.max(...moments, 0) + 1 };
}

/** The first row of the cited state that the newest one has otherwise. `past` shows the cited state. */
function compareStates(
  newest: Connection,
  past: Connection,
  citation: Citation,
  before: KnownAt,
): Difference | null {
  const [cited, here] = [readCitedRows(past, citation), readCitedRows(newest, citation)];
  const next = (rows: Generator<CitedRow>) => rows.next().value as CitedRow | undefined;
  for (let [a, b] = [next(cited), next(here)]; a ?? b; [a, b] = [next(cited), next(here)]) {
    if (a?.text === b?.text) continue;
    const isSame = a && b && a.series.index_id === b.series.index_id && a.ts === b.ts;
    const isCitedFirst = b === undefined || (a !== undefined && isBefore(a, b, citation));
    const row = (isCitedFirst ? a : b) as CitedRow;
    const changed = findChange(newest, row, before.commit);
    return {
      ...placeOf(row.series, { from: row.ts, to: row.ts + 1 }),
      cited: isSame || isCitedFirst ? valuesOf(a) : null,
      here: isSame || !isCitedFirst ? valuesOf(b) : null,
      reason: isSame ? "corrected later" : isCitedFirst ? "withdrawn later" : "arrived later",
      detail: changed === undefined ? null : formatTimestamp(changed),
    };
  }
  return null;
}

function isBefore(a: CitedRow, b: CitedRow, { ids }: Citation): boolean {
  const place = (row: CitedRow) => ids.findIndex((id) => row.text.startsWith(`${id},`));
  return place(a) - place(b) < 0 || (place(a) === place(b) && a.ts < b.ts);
}

/** When the first record that decides a row changed after a commit. */
function findChange(connection: Connection, { series, stream, from, to }: CitedRow, commit: number) {
  const { pastTable, table, keyColumn } = rowTables[stream];
  const inSpan = `${keyColumn} = @key AND ts >= @from AND ts < @to`;
  return connection.findValue<Micros>(
    `SELECT at FROM commits WHERE seq = (SELECT min(seq) FROM (SELECT until AS seq FROM ${pastTable} WHERE ${inSpan} AND until > @commit
      UNION ALL SELECT since FROM ${table} WHERE ${inSpan} AND since > @commit))`,
    { key: series.key, from, to, commit },
  );
}

/** Where the first difference is by the marks, and what the ledger knows about that place. */
function explain(
  connection: Connection,
  citation: Citation,
  here: ReturnType<typeof answer>,
): Difference | null {
  const at = citation.marks.findIndex((mark, n) => here.marks[n]?.text !== mark);
  const n = at < 0 ? citation.marks.length : at;
  const previous = here.marks[n - 1]?.last;
  const { first = here.first, last = here.last } = here.marks[n] ?? {};
  const row = first ?? previous;
  const span = spanOf(citation);
  const sourced = row ?? resolveAsked(connection, citation)[0];
  if (sourced === undefined) return null;
  const { series, stream } = sourced;
  const isOf = (other: CitedRow | undefined) => other?.series.index_id === series.index_id;
  const start = citation.kind === "asof" ? (row?.from ?? span.from) : span.from;
  const from = isOf(previous) ? (previous?.to ?? span.from) : start;
  const to = isOf(here.marks[n]?.last) ? (last?.to ?? span.to) : span.to;
  const range = { from, to: Math.max(to, from + 1) };
  const difference = (at: TimeRange, reason: string, detail: string | null): Difference => ({
    ...placeOf(series, at),
    ...{ cited: null, here: markStep(citation.rows) === 1 ? valuesOf(first) : null, reason, detail },
  });
  const [gap] = findMissing(connection, [{ series, stream }], range);
  if (gap) return difference({ from: gap.from_ts, to: gap.to_ts }, `${gap.state} here`, gap.reason);
  const { pastTable, keyColumn } = rowTables[stream];
  const revised = connection.findRow<{ ts: Micros; at: Micros }>(
    `SELECT p.ts, c.at FROM ${pastTable} p JOIN commits c ON c.seq = p.until
      WHERE p.${keyColumn} = ? AND p.ts >= ? AND p.ts < ? AND p.revision > 0 ORDER BY p.ts LIMIT 1`,
    [series.key, range.from, range.to],
  );
  if (revised)
    return difference(
      { from: revised.ts, to: revised.ts + 1 },
      "corrected here",
      formatTimestamp(revised.at),
    );
  if (!citation.isComplete) return difference(range, "incomplete when cited", null);
  const advice = "both prove it complete: `mds-sync verify` compares this one with the service";
  return difference(range, "unknown", advice);
}

function placeOf({ name }: CitedRow["series"], { from, to }: TimeRange) {
  return {
    name,
    ...{ from_ts: from, to_ts: to, from_time: formatTimestamp(from), to_time: formatTimestamp(to) },
  };
}

/** The values of a line, without the id. */
function valuesOf(row: CitedRow | undefined): string | null {
  return row ? row.text.slice(row.text.indexOf(",") + 1, -1) : null;
}
