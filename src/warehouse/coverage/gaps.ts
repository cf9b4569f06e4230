import type { HistoryStream } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { Publication } from "../../rule/answer.ts";
import { assertValidLedger } from "../../rule/ledger-ranges.ts";
import type { SettledRangeRow } from "../schema/coverage.ts";
import type { SeriesNames } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { SqlDialect } from "../views/sql-dialect.ts";
import type { SeriesKey } from "./ledger.ts";
import {
  type Absence,
  findAbsence,
  readClaims,
  readPendingClaims,
  type StoredClaim,
} from "./pending-claims.ts";
import { computeQuietTime, extendSettleDelay, type Lateness, readLateness } from "./publication.ts";
import type { TargetRules } from "./targets.ts";

/*
 * Target − settled is implemented twice: `findGaps` in TypeScript for this program, `gapPartsSql` (views/gap-parts.ts) in SQL for
 * the view `gaps`. Property tests compare them, and the reasons of history-gaps.ts with those of the view.
 */

/** The end of a target at `now`, in whole steps. The service may still change younger records. */
export function computeTargetEnd(
  { settleDelay, step }: Pick<TargetRules, "settleDelay" | "step">,
  now: Micros,
): Micros {
  return Math.floor((now - settleDelay) / step) * step;
}

/** Where the service's window begins at `now`. Without a window: the smallest safe integer, which SQL can bind. */
export function computeWindowStart(serviceWindow: Micros | null, now: Micros): Micros {
  return serviceWindow === null ? Number.MIN_SAFE_INTEGER : now - serviceWindow;
}

/** The service's clock is known from its responses, and better after more of them: the window's start may seem to move back. */
const MAX_CLOCK_ERROR = 60 * MICROS_PER_SECOND;

/**
 * Where a target begins at `now`. Until REST has proven its oldest part, it begins where the service's window does: the first
 * walk takes time, and what leaves the window meanwhile was never promised. `firstSettled`: where the ledger of the key begins.
 */
export function computeTargetStart(
  { from, serviceWindow, isSnapshot }: Pick<StoredTarget, "from" | "serviceWindow" | "isSnapshot">,
  firstSettled: Micros | undefined,
  now: Micros,
): Micros {
  if (isSnapshot) return from;
  const windowStart = computeWindowStart(serviceWindow, now);
  const start = firstSettled ?? Number.POSITIVE_INFINITY;
  return Math.max(from, start <= windowStart + MAX_CLOCK_ERROR ? start : windowStart);
}

/** `computeTargetStart` of the target `w` in SQL. */
export function targetStartSql(
  { table, largest }: Pick<SqlDialect, "table" | "largest">,
  now: string,
): string {
  const firstSettled = `(SELECT min(f.from_ts) FROM ${table("settled_ranges")} f
    WHERE f.stream = w.stream AND f.series = w.series AND f.from_ts <= ${now} - w.service_window + ${MAX_CLOCK_ERROR})`;
  return `CASE WHEN w.is_snapshot = 1 OR w.service_window IS NULL THEN w.from_ts
    ELSE ${largest("w.from_ts", `coalesce(${firstSettled}, ${now} - w.service_window)`)} END`;
}

/** A stored target of one ledger key. */
export interface StoredTarget extends TargetRules {
  readonly from: Micros;
  /** Null: the settings still select the key. */
  readonly to: Micros | null;
  /** The stream is a snapshot stream: nothing of it can be fetched later. */
  readonly isSnapshot: boolean;
  /** How late records of the stream appeared; undefined: in time. */
  readonly lateness?: Lateness | undefined;
  /** What REST has shown of the series; undefined: it was never asked. */
  readonly publication?: Publication | undefined;
  /** What REST has said not to have, once; undefined: nothing. */
  readonly absence?: Absence | undefined;
}

/** Reason of ranges that no snapshot covered. */
export const NOT_OBSERVED_REASON = "not observed";

/**
 * A part of a gap. `lost`: out of reach; `absent`: the service must repeat that it has none of it; `open`: to be fetched;
 * `unpublished`: REST was asked and has shown no record in it or above; `quiet`: too young to be final for a quiet series, but
 * asked for; `settling`: too young to be final.
 */
export interface GapPart extends TimeRange {
  readonly state: "lost" | "absent" | "open" | "unpublished" | "quiet" | "settling";
}

/** The gaps of one ledger key at `now` by the service's clock, ascending. `targets` and `settled` are ascending and disjoint. */
export function findGaps(targets: readonly StoredTarget[], settled: TimeRanges, now: Micros): GapPart[] {
  const parts: GapPart[] = [];
  const add = (state: GapPart["state"], from: Micros, to: Micros) => {
    if (from < to) parts.push({ from, to, state });
  };
  for (const target of targets) {
    const { step, publication } = target;
    const settleDelay = extendSettleDelay(target, target.lateness, now);
    const targetEnd = computeTargetEnd({ settleDelay, step }, now);
    const quietMargin = publication?.quietMargin ?? 0;
    const quietAt = publication && quietMargin > 0 ? computeQuietTime(publication, now) : now;
    const quietFrom = computeTargetEnd({ settleDelay: Math.max(settleDelay, quietMargin), step }, quietAt);
    const silence =
      publication && quietMargin === 0 && publication.publishedTo < publication.askedTo
        ? { from: publication.publishedTo, to: publication.askedTo }
        : { from: now, to: now };
    const lostUntil = target.isSnapshot ? targetEnd : computeWindowStart(target.serviceWindow, now);
    const start = computeTargetStart(target, settled[0]?.from, now);
    const range = { from: start, to: Math.min(target.to ?? now, now) };
    for (const { from, to } of subtract([range], settled)) {
      add("lost", from, Math.min(to, lostUntil));
      const [servedFrom, openTo] = [Math.max(from, lostUntil), Math.min(to, quietFrom)];
      const openFrom = Math.max(servedFrom, target.absence?.to ?? servedFrom);
      add("absent", servedFrom, Math.min(openTo, openFrom));
      add("open", openFrom, Math.min(openTo, silence.from));
      add("unpublished", Math.max(openFrom, silence.from), Math.min(openTo, silence.to));
      add("open", Math.max(openFrom, silence.to), openTo);
      add("quiet", Math.max(servedFrom, quietFrom), Math.min(to, targetEnd));
      add("settling", Math.max(servedFrom, targetEnd), to);
    }
  }
  return parts;
}

/** The ranges of the given states. */
export function selectRanges(parts: readonly GapPart[], ...states: readonly GapPart["state"][]): TimeRanges {
  const selected = parts.filter(({ state }) => states.includes(state));
  return normalise(selected.map(({ from, to }) => ({ from, to })));
}

/** The gaps of one series at one time. */
export interface SeriesGaps extends Readonly<SeriesNames> {
  readonly key: SeriesKey;
  /** To be requested: `missing`, `unpublished`, `unconfirmed`, and what is too young to be final for a quiet series. */
  readonly open: TimeRanges;
  /** REST may have records in these ranges. */
  readonly missing: TimeRanges;
  /** REST was asked about these ranges, and has shown no record in them or above. */
  readonly unpublished: TimeRanges;
  /** The service has none of these ranges, but must say so again. They contradict no row. */
  readonly unconfirmed: TimeRanges;
  /** Its claims that are not accepted yet. */
  readonly claims: readonly StoredClaim[];
  /** Older than the service's window: these ranges can no longer be fetched. */
  readonly agedOut: TimeRanges;
  /** How far back the service serves records: a range is lost at `from + serviceWindow`. Null: no limit. */
  readonly serviceWindow: Micros | null;
  /** Why the open ranges cannot be fetched at present, for example `forbidden`. */
  readonly blockedReason: string | null;
}

/** A target of a history stream. */
export interface HistoryTarget extends StoredTarget, Readonly<SeriesNames> {
  readonly series: number;
  /** Why the open ranges cannot be fetched at present. */
  readonly blockedReason: string | null;
}

type TargetWithPublication = Omit<HistoryTarget, "isSnapshot" | "publication"> &
  (Publication | { readonly publishedTo: null });

const targetsSql = (
  condition: string,
) => `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.from_ts AS "from", w.to_ts AS "to",
    w.settle_delay AS settleDelay, w.step, w.service_window AS serviceWindow, w.blocked_reason AS blockedReason,
    u.published_to AS publishedTo, u.asked_at AS askedAt, u.asked_to AS askedTo, u.quiet_margin AS quietMargin
  FROM targets w JOIN series s ON s.series = w.series
    LEFT JOIN publications u ON u.stream = w.stream AND u.series = w.series
  WHERE w.stream = @stream AND w.is_snapshot = 0 ${condition} ORDER BY w.series, w.from_ts`;

const settledSql = (condition: string) => `SELECT series, from_ts AS "from", to_ts AS "to", proof, reason
  FROM settled_ranges WHERE stream = @stream ${condition} ORDER BY series, from_ts`;

const allSeriesSql = { targets: targetsSql(""), settled: settledSql("") };
/** Separate statements: with an optional condition SQLite would scan instead of seek. */
const oneSeriesSql = {
  targets: targetsSql("AND w.series = @series"),
  settled: settledSql("AND series = @series"),
};

/** The targets of a history stream, or of one series of it, by series. */
export function readHistoryTargets(
  connection: Connection,
  stream: HistoryStream,
  series?: number,
): Map<number, HistoryTarget[]> {
  const lateness = readLateness(connection, stream);
  const rows =
    series === undefined
      ? connection.rows<TargetWithPublication>(allSeriesSql.targets, { stream })
      : connection.rows<TargetWithPublication>(oneSeriesSql.targets, { stream, series });
  const targets = rows.map(
    (row): HistoryTarget => ({
      ...row,
      isSnapshot: false,
      lateness,
      publication: row.publishedTo === null ? undefined : row,
    }),
  );
  return Map.groupBy(targets, (target) => target.series);
}

/**
 * The gaps of every series of a stream, or of one series, at `now` by the service's clock. Series without gaps are
 * left out.
 */
export function readGaps(
  connection: Connection,
  stream: HistoryStream,
  now: Micros,
  series?: number,
): SeriesGaps[] {
  const [sql, parameters] =
    series === undefined ? [allSeriesSql, { stream }] : [oneSeriesSql, { stream, series }];
  const pending =
    series === undefined
      ? readPendingClaims(connection, stream)
      : new Map([
          [
            series,
            readClaims(connection, { stream, series }).filter(({ acceptedAt }) => acceptedAt === null),
          ],
        ]);
  const settled = Map.groupBy(
    connection.rows<Omit<SettledRangeRow, "stream">>(sql.settled, parameters),
    (range) => range.series,
  );
  return [...readHistoryTargets(connection, stream, series)].flatMap(([seriesKey, own]): SeriesGaps[] => {
    const settledRanges = settled.get(seriesKey) ?? [];
    assertValidLedger(settledRanges);
    const claims = pending.get(seriesKey) ?? [];
    const targets = own.map((target) => ({ ...target, absence: findAbsence(claims) }));
    const parts = findGaps(targets, normalise(settledRanges), Math.floor(now));
    const open = selectRanges(parts, "absent", "open", "unpublished", "quiet");
    const agedOut = selectRanges(parts, "lost");
    if (open.length + agedOut.length === 0) return [];
    const { indexType, indexId, name, serviceWindow, blockedReason } = targets.at(-1) as HistoryTarget;
    return [
      {
        key: { stream, series: seriesKey },
        indexType,
        indexId,
        name,
        open,
        missing: selectRanges(parts, "open"),
        unconfirmed: selectRanges(parts, "absent"),
        claims,
        unpublished: selectRanges(parts, "unpublished"),
        agedOut,
        serviceWindow,
        blockedReason,
      },
    ];
  });
}
