import { type Stream, streams } from "../../model/streams.ts";
import { formatInstant, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import { type LastCrash, readLastCrash } from "../sqlite/crash-marker.ts";
import { freeBytes } from "../sqlite/disk.ts";
import { walBytes, warehouseBytes } from "../sqlite/wal.ts";
import { jobRuns } from "./job-runs.ts";
import { daysUntilFull, sizeSamples } from "./size-history.ts";
import { isWalkedSql, walkObserved } from "./snapshot-gaps.ts";

/** One stream as `status --json` and `/api/status` show it. */
export interface StreamStatus {
  readonly stream: Stream;
  /** The first and the last moment that are proven; null where nothing is. */
  readonly from_time: string | null;
  readonly to_time: string | null;
  readonly rows: number;
  /** Ranges that will be fetched; a head that only awaits its confirmation does not count. */
  readonly open: number;
  readonly open_seconds: number;
  /** Ranges that the service no longer has. */
  readonly lost: number;
  readonly lost_seconds: number;
  /** Seconds since the newest row, or since the last refresh of a lookup. */
  readonly newest_age_s: number | null;
  readonly last_error: string | null;
  readonly last_error_at: string | null;
  readonly missing_scopes: readonly string[];
}

/** The warehouse's place on its disk. */
export interface DiskStatus {
  readonly warehouse_bytes: number;
  readonly wal_bytes: number;
  readonly free_bytes: number;
  /** At the present growth; null without growth, or while less than an hour of it is known. */
  readonly full_in_days: number | null;
}

export interface JobStatus {
  readonly job: string;
  readonly ended_at: string;
  readonly outcome: string;
}

export interface WarehouseStatus {
  readonly generated_at: string;
  readonly warehouse: string;
  readonly streams: readonly StreamStatus[];
  readonly disk: DiskStatus;
  /** The last run of each scheduled job; empty where no daemon has run. */
  readonly jobs: readonly JobStatus[];
  /** When and why a daemon last ended without being told to; null where none has. */
  readonly last_crash: LastCrash | null;
}

interface StateRow {
  readonly rows: number;
  readonly newest_ts: Micros | null;
  readonly last_error: string | null;
  readonly last_error_at: string | null;
  readonly missing_scopes: string;
}

interface GapSum {
  readonly stream: string;
  readonly state: "open" | "lost";
  ranges: number;
  extent: number;
}

/** Cheap at any size: counts are kept with the rows, and the ledger is short where it is not walked in one pass. */
export function readStatus(connection: Connection, now: Micros): WarehouseStatus {
  const all = <Row>(sql: string) => connection.statement(sql).all() as Row[];
  // One snapshot for all of them: counts and coverage of different moments would contradict each other.
  return connection.database.transaction(() => {
    const states = new Map(
      all<StateRow & { stream: string }>("SELECT * FROM stream_states").map((row) => [row.stream, row]),
    );
    const covered = new Map(
      all<{ stream: string; from_ts: Micros; to_ts: Micros }>(
        `SELECT stream, min(from_ts) AS from_ts, max(to_ts) AS to_ts FROM settled_ranges WHERE proof <> 'lost' GROUP BY stream`,
      ).map((row) => [row.stream, row]),
    );
    const gaps = all<GapSum>(
      `SELECT stream, state, count(*) AS ranges, sum(to_ts - from_ts) AS extent FROM gaps
        WHERE ${isWalkedSql} AND reason IS NOT 'settling' GROUP BY stream, state`,
    ).concat(observedLosses(connection));
    const sum = (stream: Stream, state: GapSum["state"]) =>
      gaps.find((gap) => gap.stream === stream && gap.state === state) ?? { ranges: 0, extent: 0 };
    return {
      generated_at: formatInstant(now),
      warehouse: connection.path,
      streams: streams.map((stream): StreamStatus => {
        const state = states.get(stream);
        const range = covered.get(stream);
        const [open, lost] = [sum(stream, "open"), sum(stream, "lost")];
        const newest = state?.newest_ts ?? null;
        return {
          stream,
          from_time: range ? formatInstant(range.from_ts) : null,
          to_time: range ? formatInstant(range.to_ts) : null,
          rows: state?.rows ?? 0,
          open: open.ranges,
          open_seconds: Math.round(open.extent / MICROS_PER_SECOND),
          lost: lost.ranges,
          lost_seconds: Math.round(lost.extent / MICROS_PER_SECOND),
          newest_age_s: newest === null ? null : Math.max(0, Math.round((now - newest) / MICROS_PER_SECOND)),
          last_error: state?.last_error ?? null,
          last_error_at: state?.last_error_at ?? null,
          missing_scopes: state ? (JSON.parse(state.missing_scopes) as string[]) : [],
        };
      }),
      disk: readDisk(connection),
      jobs: jobRuns(connection)
        .filter(({ outcome }) => outcome !== "new")
        .map(({ job, endedAt, outcome }) => ({ job, ended_at: endedAt, outcome })),
      last_crash: readLastCrash(connection.path) ?? null,
    };
  })();
}

function observedLosses(connection: Connection): GapSum[] {
  const sums = new Map<string, GapSum>();
  walkObserved(connection, ({ stream }, { from, to, state }) => {
    if (state !== "lost") return;
    const sum = sums.get(stream) ?? { stream, state, ranges: 0, extent: 0 };
    sum.ranges++;
    sum.extent += to - from;
    sums.set(stream, sum);
  });
  return [...sums.values()];
}

export function readDisk(connection: Connection): DiskStatus {
  const free = freeBytes(connection.path);
  const days = daysUntilFull(sizeSamples(connection), free);
  return {
    warehouse_bytes: warehouseBytes(connection.path),
    wal_bytes: walBytes(connection.path),
    free_bytes: free,
    full_in_days: days === undefined || days === Number.POSITIVE_INFINITY ? null : Math.round(days * 10) / 10,
  };
}
