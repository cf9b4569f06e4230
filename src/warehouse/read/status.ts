import {
  type Confirmations,
  END_REASON,
  type GapRow,
  NOT_FOUND_REASON,
  SETTLING_REASON,
} from "../../model/status/gap-state.ts";
import type { DiskStatus, StreamStatus, WarehouseStatus } from "../../model/status/warehouse-status.ts";
import { type Stream, streams, streamTable } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { PendingClaim } from "../../rule/answer.ts";
import { type ConfirmationRules, isIncident, nextAskAt } from "../../rule/confirm.ts";
import { readReportedWithdrawals } from "../coverage/pending-claims.ts";
import { readGapsOf, seriesSpans } from "../coverage/series-gaps.ts";
import { type NamedLedgerKey, namedKeyText } from "../coverage/series-queries.ts";
import { readPresentTs } from "../coverage/targets.ts";
import { readServiceUrl } from "../lookups/service-identity.ts";
import { readStreamStates } from "../rows/stream-stats.ts";
import type { Connection } from "../sqlite/connection.ts";
import { readLastCrash } from "../sqlite/crash-marker.ts";
import { readFreeBytes } from "../sqlite/disk.ts";
import { readWalBytes, readWarehouseBytes } from "../sqlite/wal.ts";
import { estimateDaysUntilFull, readSizeSamples } from "../tables/size-history.ts";
import { readClockSkew, readJobRuns } from "../tables/warehouse-state.ts";

/** Streams of which the settings select something: a target that has not ended. */
const followedSql = "SELECT DISTINCT stream FROM targets WHERE to_ts IS NULL";

/** Fast at any size: row counts are stored, and the ledger is read in one pass. `rules`: when the service is asked again. */
export function readStatus(connection: Connection, now: Micros, rules?: ConfirmationRules): WarehouseStatus {
  // One transaction, so that counts and coverage agree.
  return connection.database.transaction(() => {
    for (const steps = readStatusInSteps(connection, now, rules); ; ) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  })();
}

/** The same for a thread that answers others meanwhile. The caller keeps a read transaction open until the end. */
export function* readStatusInSteps(
  connection: Connection,
  now: Micros,
  rules?: ConfirmationRules,
): Generator<void, WarehouseStatus> {
  const states = new Map(readStreamStates(connection).map((row) => [row.stream, row]));
  const followed = new Set(connection.values<string>(followedSql));
  const ageOf = (ts: Micros) => Math.max(0, toSeconds(now - ts));
  const { sums, claimed } = yield* sumGaps(connection);
  return {
    generated_at: formatTimestamp(now),
    warehouse: connection.path,
    streams: streams.map((stream): StreamStatus => {
      const state = states.get(stream);
      const range = readCoveredSpan(connection, stream);
      const { open, unconfirmed, lost } = sums.get(stream) ?? noTotals();
      const newest = state?.newestTs ?? null;
      return {
        stream,
        from_time: range ? formatTimestamp(range.from) : null,
        // An observation holds for its period, which may not be over.
        to_time: range ? formatTimestamp(Math.min(now, range.to)) : null,
        rows: state?.rows ?? 0,
        open: open.ranges,
        open_seconds: toSeconds(open.extent),
        open_max_seconds: toSeconds(open.maxExtent),
        oldest_open_age_s: open.ranges === 0 ? null : ageOf(open.from),
        unconfirmed: unconfirmed.ranges,
        lost: lost.ranges,
        lost_seconds: toSeconds(lost.extent),
        lost_max_seconds: toSeconds(lost.maxExtent),
        newest_age_s: newest === null ? null : ageOf(newest),
        is_followed: streamTable[stream].kind === "lookup" || followed.has(stream),
        last_error: state?.lastError ?? null,
        last_error_at: state?.lastErrorAt ?? null,
        missing_scopes: state ? (JSON.parse(state.missingScopes) as string[]) : [],
        live_offset_ms: state?.liveOffset == null ? null : state.liveOffset / MICROS_PER_MS,
      };
    }),
    confirmations: readConfirmations(connection, claimed, rules),
    disk: readDiskStatus(connection),
    jobs: readJobRuns(connection)
      .filter(({ outcome }) => outcome !== "new")
      .map(({ job, endedAt, outcome }) => ({ job, ended_at: endedAt, outcome })),
    withdrawals: readReportedWithdrawals(connection, now),
    last_crash: readLastCrash(connection.path) ?? null,
    service_url: readServiceUrl(connection),
    clock_skew_s: toSeconds(readClockSkew(connection)),
  };
}

/** Whether any stream but the lookups has a row. */
export function hasData(connection: Connection): boolean {
  return readStreamStates(connection).some(
    ({ stream, rows }) => rows > 0 && streamTable[stream].kind !== "lookup",
  );
}

/** Where the coverage of a stream begins and ends. A history begins with its first row, not where it was proven to have none. */
export function readCoveredSpan(connection: Connection, stream: Stream): TimeRange | undefined {
  const sql = `SELECT coalesce(min(CASE WHEN proof <> 'empty' THEN from_ts END), min(from_ts)) AS "from", max(to_ts) AS "to"
    FROM settled_ranges WHERE stream = ? AND proof <> 'lost' HAVING count(*) > 0`;
  return connection.findRow<TimeRange>(sql, [stream]);
}

const toSeconds = (micros: Micros) => Math.round(micros / MICROS_PER_SECOND);

/** The gaps of one state: how many, how long, how long those of the series with the most, and where the oldest begins. */
const noGaps = () => ({ ranges: 0, extent: 0, maxExtent: 0, from: Number.POSITIVE_INFINITY });
const noTotals = () => ({ open: noGaps(), unconfirmed: noGaps(), lost: noGaps() });

/** The gaps of each stream by state, and those that the service has made a claim about. */
function* sumGaps(connection: Connection) {
  const sums = new Map(streams.map((stream) => [stream, noTotals()]));
  const claimed: { reason: string }[] = [];
  const now = readPresentTs(connection);
  for (const [stream, ofStates] of sums)
    for (const span of seriesSpans(connection, stream)) {
      const gaps = readGapsOf(connection, span, now);
      for (const ranges of gaps.values()) {
        const extents = { open: 0, unconfirmed: 0, lost: 0 };
        for (const { from, to, state, reason } of ranges) {
          const sum = ofStates[state];
          sum.ranges++;
          sum.extent += to - from;
          sum.from = Math.min(sum.from, from);
          extents[state] += to - from;
          sum.maxExtent = Math.max(sum.maxExtent, extents[state]);
          if (state === "unconfirmed" && reason !== SETTLING_REASON) claimed.push({ reason });
        }
      }
      if (gaps.size > 0) yield;
    }
  return { sums, claimed };
}

function readDiskStatus(connection: Connection): DiskStatus {
  const free = readFreeBytes(connection.path);
  const days = estimateDaysUntilFull(readSizeSamples(connection), free);
  return {
    warehouse_bytes: readWarehouseBytes(connection.path),
    wal_bytes: readWalBytes(connection.path),
    free_bytes: free,
    full_in_days: days === undefined || days === Number.POSITIVE_INFINITY ? null : Math.round(days * 10) / 10,
  };
}

/**
 * How many of the gaps are claims that the service must repeat, and when it is asked about the last of them. `keys`: of which the
 * gaps are; undefined: all. Heads do not count.
 */
export function readConfirmations(
  connection: Connection,
  gaps: readonly Pick<GapRow, "reason">[],
  rules: ConfirmationRules | undefined,
  keys?: ReadonlySet<string>,
): Confirmations {
  const count = (reason: string) => gaps.filter((gap) => gap.reason === reason).length;
  const [starts, not_found] = [count(END_REASON), count(NOT_FOUND_REASON)];
  if (!rules || starts + not_found === 0) return { starts, not_found, due_at: null };
  const sql = `SELECT m.stream, s.index_type, s.index_id, m.kind, m.last_at AS lastAt
    FROM pending_claims m JOIN series s ON s.series = m.series WHERE m.accepted_at IS NULL`;
  const due = connection
    .rows<NamedLedgerKey & Pick<PendingClaim, "kind" | "lastAt">>(sql)
    .filter((claim) => !isIncident(claim.kind) && (keys?.has(namedKeyText(claim)) ?? true))
    .map((claim) => nextAskAt(claim, rules));
  return { starts, not_found, due_at: due.length === 0 ? null : formatTimestamp(Math.max(...due)) };
}
