import type { BarFigures } from "../../model/answers/bar-aggregate.ts";
import { computeWindowStart, type RowStream, streamTable } from "../../model/streams.ts";
import { barWidths, formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { AGED_OUT_REASON, type SettledRange } from "../../rule/answer.ts";
import { reopen } from "../../rule/apply.ts";
import { applyChanges, removeRanges } from "../coverage/ledger.ts";
import { type NamedLedgerKey, namedKeyText } from "../coverage/series-queries.ts";
import { readPresentTs } from "../coverage/targets.ts";
import { computeBar, formatDigits, hoursOf, markStale } from "../rows/kept-bars.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { targetStartSql } from "../views/gap-parts.ts";
import { presentTs, sqliteDialect } from "../views/sqlite-dialect.ts";
import {
  type AuditContext,
  type AuditedKey,
  type AuditFinding,
  type AuditRule,
  createFinding,
  readAuditedKeys,
} from "./audited-key.ts";
import { checkRows } from "./check-rows.ts";

export type AuditResult = ReturnType<typeof auditLedger>;

/**
 * Checks the whole ledger against itself, the rows and the view `gaps`, without the service. Only reads, in
 * one transaction, and seeks rows instead of scanning them, except for the kept bars. `now`: the present by the service's clock.
 */
export function auditLedger(connection: Connection, now?: Micros) {
  return connection.database.transaction(() => {
    const context: AuditContext = { connection, now: now ?? readPresentTs(connection) };
    const viewGaps = readViewGaps(context);
    let keyCount = 0;
    let rangeCount = 0;
    const found: AuditFinding[] = [];
    for (const audited of readAuditedKeys(connection)) {
      keyCount++;
      rangeCount += audited.settled.length;
      found.push(...checkKey(context, audited, viewGaps));
    }
    return {
      keyCount,
      rangeCount,
      /** Rules that are broken, in the order of the ledger. */
      findings: found.filter(({ rule }) => rule !== "long_pause"),
      /** What is unusual but may be right. */
      remarks: found.filter(({ rule }) => rule === "long_pause"),
    };
  })();
}

/** The other checks assume ascending and disjoint ranges. */
function checkKey(context: AuditContext, audited: AuditedKey, viewGaps: GapsByKey): AuditFinding[] {
  const disorder = checkOrder(audited);
  if (disorder.length > 0) return disorder;
  return [
    ...checkTiling(context, audited, viewGaps),
    ...checkClaims(context, audited),
    ...checkRows(context, audited),
    ...checkKeptBars(context, audited),
  ];
}

/** Views and targets: the next start declares them again. The others are false claims of the ledger, and wrong bars. */
const unrepairableRules: readonly AuditRule[] = ["targets", "tiling", "long_pause"];

export function isRepairable({ rule }: AuditFinding): boolean {
  return !unrepairableRules.includes(rule);
}

/**
 * Takes back every claim that the audit found false: its range becomes a gap, which the next run fetches again. A snapshot
 * stream has no history, so there the range is lost. Rows stay. Wrong bars are computed again. Returns how many findings it has repaired.
 */
export function repairLedger(transaction: Transaction, findings: readonly AuditFinding[]): number {
  const repairable = findings.filter(isRepairable);
  // First, because taking back refuses a ledger with overlaps.
  for (const { rule, key, from, to } of repairable)
    if (rule === "order") {
      removeRanges(transaction, key, "from_ts < ? AND to_ts >= ?", [to, from]);
      transaction.journal.add(key.stream as RowStream, "retracted", key.series, { from, to });
    }
  for (const { rule, key, from, to } of repairable)
    if (rule === "kept_bars")
      for (const hour of hoursOf({ from, to })) markStale(transaction, key.series, hour);
    else if (rule !== "order") applyChanges(transaction, key, reopen([{ from, to }]));
  return repairable.length;
}

const HOUR = barWidths["1h"];

interface StoredBar extends Omit<BarFigures, "ticks" | "digits"> {
  readonly ts: Micros;
  /** Null: stale. */
  readonly ticks: number | null;
  readonly details: string | null;
}

const keptSql = `SELECT ts, open, high, low, close, volume_24h AS volume, n_ticks AS ticks, n_doubtful AS doubtful, details
  FROM kept_bars WHERE series = ? ORDER BY ts`;
const tickSql = `SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND price IS NOT NULL
  ORDER BY ts LIMIT 1`;

/**
 * Every kept bar that is not stale equals the bar of its ticks, and every hour with ticks has a row. This check alone
 * reads all ticks: about two seconds for five million.
 */
function checkKeptBars({ connection }: AuditContext, audited: AuditedKey): AuditFinding[] {
  const { key } = audited;
  if (key.stream !== "index_ticks") return [];
  const wrong: TimeRange[] = [];
  const unlisted: TimeRange[] = [];
  const lost = audited.settled.filter(({ proof }) => proof === "lost");
  const isLost = (hour: Micros) => lost.some(({ from, to }) => from <= hour && hour + HOUR <= to);
  const seek = connection.statement<Micros>(tickSql).pluck();
  /** Hours with ticks between two rows. */
  const checkBetween = (from: Micros, to: Micros) => {
    for (let at = from; at < to; ) {
      const found = seek.get([key.series, at, to]);
      if (found === undefined) return;
      const hour = Math.floor(found / HOUR) * HOUR;
      unlisted.push({ from: hour, to: hour + HOUR });
      at = hour + HOUR;
    }
  };
  let until = Number.MIN_SAFE_INTEGER;
  for (const { ts, ...kept } of connection.rows<StoredBar>(keptSql, [key.series])) {
    checkBetween(until, ts);
    until = ts + HOUR;
    // A bar may outlive its ticks.
    if (isLost(ts)) continue;
    if (kept.ticks !== null && !isSameBar(kept, computeBar(connection, key.series, ts)))
      wrong.push({ from: ts, to: until });
  }
  checkBetween(until, Number.MAX_SAFE_INTEGER);
  const find = (ranges: readonly TimeRange[], text: string) =>
    normalise(ranges).map((range) => createFinding(audited, "kept_bars", range, text));
  return [
    ...find(wrong, "kept hourly bars differ from their ticks"),
    ...find(unlisted, "ticks in hours that have no bar: bars_1h, bars_4h and bars_1d lack them"),
  ];
}

function isSameBar(kept: Omit<StoredBar, "ts">, computed: BarFigures | undefined): boolean {
  if (computed === undefined) return false;
  const { digits: _, ...figures } = computed;
  const bar = { ...figures, details: formatDigits(computed) };
  return (Object.keys(bar) as (keyof typeof bar)[]).every((column) => kept[column] === bar[column]);
}

/** Finds ranges that overlap, touch without being merged, or belong to a key without a name. */
function checkOrder(audited: AuditedKey): AuditFinding[] {
  const { settled, targets, names } = audited;
  const findings: AuditFinding[] = [];
  const add = (range: { from: Micros; to: Micros }, text: string) =>
    void findings.push(createFinding(audited, "order", range, text));
  for (const [at, range] of settled.entries()) {
    const previous = settled[at - 1];
    if (names === null) add(range, "the dictionary of series lacks the key: no view shows the range");
    else if (previous && previous.to > range.from) add(range, `overlaps ${describe(previous)}`);
    else if (
      previous?.to === range.from &&
      previous.proof === range.proof &&
      previous.reason === range.reason
    )
      add(range, `continues ${describe(previous)}, but is not merged with it`);
    if (range.proof !== "empty" && (range.proof === "rows") !== (range.reason === null))
      add(range, `${range.proof} ${range.reason === null ? "without a" : "with the"} reason`);
  }
  for (const [at, target] of targets.entries()) {
    const previous = targets[at - 1];
    if (!previous || (previous.to !== null && previous.to <= target.from)) continue;
    const range = { from: target.from, to: target.to ?? target.from + 1 };
    findings.push(createFinding(audited, "targets", range, "two targets of the series overlap"));
  }
  return findings;
}

function describe({ proof, from, to }: SettledRange): string {
  return `${proof} from ${formatTimestamp(from)} to ${formatTimestamp(to)}`;
}

/** A settled range may end so much after the present: clocks differ, and are read in whole seconds. */
const CLOCK_TOLERANCE_MICROS = 10 * MICROS_PER_SECOND;

/** Finds ranges that were called lost although the service still had them, and what is settled beyond the present. */
function checkClaims({ now }: AuditContext, audited: AuditedKey): AuditFinding[] {
  const { settled, targets, cadence } = audited;
  const { kind } = streamTable[audited.key.stream];
  const serviceWindow = targets.at(-1)?.serviceWindow ?? streamTable[audited.key.stream].window;
  const windowStart = serviceWindow === null ? undefined : computeWindowStart(serviceWindow, now);
  // A snapshot covers its whole period, which may not be over.
  const end = now + CLOCK_TOLERANCE_MICROS + (kind === "snapshot" ? cadence : 0);
  return settled.flatMap((range) => {
    const isAgedOut = range.proof === "lost" && range.reason === AGED_OUT_REASON;
    if (isAgedOut && range.to > (windowStart ?? Number.NEGATIVE_INFINITY)) {
      const why =
        windowStart === undefined ? "has no window" : `still served ${formatTimestamp(windowStart)}`;
      return [createFinding(audited, "lost_in_reach", range, `lost as aged out, but the service ${why}`)];
    }
    if (range.to <= end) return [];
    const text = `settled until ${formatTimestamp(range.to)}, which is in the future: a clock is or was wrong`;
    return [createFinding(audited, "future", { from: Math.max(range.from, now), to: range.to }, text)];
  });
}

type GapsByKey = ReadonlyMap<string, readonly TimeRange[]>;

/** The rows of the stored view `gaps` at `now`, by ledger key. */
function readViewGaps({ connection, now }: AuditContext): GapsByKey {
  const view = connection.value<string>(
    "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'gaps'",
  );
  const body = view.replace(/^CREATE VIEW\s+\S+\s+AS/i, "").replaceAll(presentTs, String(now));
  const rows = connection.rows<TimeRange & NamedLedgerKey>(
    `SELECT stream, index_type, index_id, from_ts AS "from", to_ts AS "to" FROM (${body})`,
  );
  return Map.groupBy(rows, namedKeyText);
}

const pastTargetsSql = `SELECT ${targetStartSql(sqliteDialect, "CAST(@now AS INTEGER)")} AS "from",
    min(coalesce(w.to_ts, CAST(@now AS INTEGER)), CAST(@now AS INTEGER)) AS "to"
  FROM targets w WHERE w.stream = @stream AND w.series = @series ORDER BY w.from_ts`;

/**
 * Every second of a target up to now must be settled or in the view `gaps`, and none in both. The view also lists what
 * is settled as lost. Expects ascending and disjoint ranges: see `checkOrder`.
 */
function checkTiling({ connection, now }: AuditContext, audited: AuditedKey, viewGaps: GapsByKey) {
  const { key, names, settled } = audited;
  const { stream, series } = key;
  const past = connection
    .rows<TimeRange>(pastTargetsSql, { stream, series, now })
    .filter(({ from, to }) => from < to);
  const expected = [
    ...subtract(normalise(past), normalise(settled)),
    ...settled.filter(({ proof }) => proof === "lost"),
  ].sort((a, b) => a.from - b.from);
  const name = { stream, index_type: names?.indexType ?? null, index_id: names?.indexId ?? null };
  const shown = (viewGaps.get(namedKeyText(name)) ?? []).toSorted((a, b) => a.from - b.from);
  const [wanted, listed] = [normalise(expected), normalise(shown)];
  const find = (ranges: readonly TimeRange[], text: string) =>
    ranges.map((range) => createFinding(audited, "tiling", range, text));
  return [
    ...find(subtract(wanted, listed), "neither covered nor in the view gaps"),
    ...find(subtract(listed, wanted), "in the view gaps, although it is covered or not selected"),
    ...find(findOverlaps(shown), "twice in the view gaps"),
  ];
}

function findOverlaps(ranges: readonly TimeRange[]): TimeRange[] {
  let end = Number.NEGATIVE_INFINITY;
  return ranges.flatMap(({ from, to }) => {
    const overlap = { from, to: Math.min(to, end) };
    end = Math.max(end, to);
    return overlap.from < overlap.to ? [overlap] : [];
  });
}
