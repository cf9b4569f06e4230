import { createHash } from "node:crypto";
import { Failure } from "../../model/failure.ts";
import { type SnapshotStream, streamTable } from "../../model/streams.ts";
import { barWidths, formatTimestamp, type Micros, parseTimestamp } from "../../model/time.ts";
import { readPresentTs } from "../coverage/targets.ts";
import { lookupTables } from "../lookups/lookup-writer.ts";
import type { LookupTable } from "../lookups/reconcile-lookup.ts";
import { nameOf, readSqlTokens } from "../query/sql-tokens.ts";
import { type Connection, type KnownAt, withoutParts } from "../sqlite/connection.ts";
import { targetStartSql } from "../views/gap-parts.ts";
import { sqliteDialect } from "../views/sqlite-dialect.ts";
import { isParted, slotOf } from "./row-parts.ts";
import { rowTables } from "./row-tables.ts";

/*
 * The state of an earlier commit: of each row and range the version that was written up to it and not replaced by then, of each
 * lookup the values before the changes that were noticed after it. Temporary
 * views with the names of the tables hide these, and copies of the file's views read them, so every reader and every SQL reads the
 * state that is shown. They read the commit from a table, so that another state needs no other statements.
 */

const HOUR = barWidths["1h"];
const SHOWN = "(SELECT shown FROM shown_commit)";
const isCurrent = `ifnull(since, 0) <= ${SHOWN}`;
const isPast = `${isCurrent} AND until > ${SHOWN}`;

const shownAt = "(SELECT at_text FROM shown_commit)";

const sourceThen = `CASE WHEN confirmed > ${SHOWN} THEN 1 ELSE source END AS source`;

const versions = (table: string, past: string, columns: string) =>
  `SELECT ${columns} FROM main.${table} WHERE ${isCurrent} UNION ALL SELECT ${columns} FROM main.${past} WHERE ${isPast}`;

const microsOf = (text: string) =>
  `CAST(strftime('%s', ${text}) AS INTEGER) * 1000000 + CAST(substr(${text}, 21, 6) AS INTEGER)`;

/** The rows of a lookup with the values that their later changes have replaced. */
function lookupThen({ entity, table, keys, tracked, untracked, types }: LookupTable): string {
  const id = keys.map((key) => `t.${key}`).join(" || '/' || ");
  const then = (column: string) => {
    const later = `FROM main.status_changes c WHERE c.entity = '${entity}' AND c.id = ${id} AND c.field = '${column}' AND c.seen_at > ${shownAt}`;
    const type = types.get(column) ?? "text";
    const numbered = ["decimal", "integer"].includes(type) ? "old + 0" : "old";
    const old = type === "timestamp" ? microsOf("old") : numbered;
    return `CASE WHEN EXISTS (SELECT 1 ${later}) THEN (SELECT ${old} ${later} ORDER BY c.change LIMIT 1) ELSE t.${column} END AS ${column}`;
  };
  // The key of a contract is in every row of its ticks, whenever it was described.
  const isDictionary = untracked.includes("is_described");
  const others = tracked.includes("quality") ? untracked : [...untracked, "quality"];
  const kept = others.map((column) =>
    column === "is_described"
      ? `(t.is_described AND t.first_seen <= ${shownAt}) AS is_described`
      : `t.${column}`,
  );
  const own = isDictionary ? ["contract", "exchange", "pair"] : [];
  const columns = [...[...own, ...keys, "first_seen", "absences"].map((column) => `t.${column}`), ...kept];
  return `SELECT ${[...columns, ...[...tracked, "delisted_at"].map(then)].join(", ")} FROM main.${table} t
    ${isDictionary ? "" : `WHERE t.first_seen <= ${shownAt}`}`;
}

const noticed = (table: string, column: string) =>
  `SELECT * FROM main.${table} WHERE ${column} <= ${shownAt}`;

/** Reason of what an earlier state had not settled. */
export const NOT_PROVEN_THEN_REASON = "not proven then";

/** What the ledger of then lacked of the targets of now: neither those of then nor what the service had published is known. */
const gapsThen = `WITH spans AS (SELECT w.stream, w.series, ${targetStartSql(sqliteDialect, "s.present")} AS start_ts,
      min(coalesce(w.to_ts, s.present), s.present) AS end_ts, w.from_ts AS target FROM targets w, shown_commit s),
  parts AS (
    SELECT stream, series, max(to_ts) OVER ranges AS from_ts, coalesce(lead(from_ts) OVER ranges, end_ts) AS to_ts,
      'open' AS state, '${NOT_PROVEN_THEN_REASON}' AS reason
    FROM (SELECT stream, series, target, end_ts, start_ts AS from_ts, start_ts AS to_ts FROM spans
      UNION ALL SELECT w.stream, w.series, w.target, w.end_ts, r.from_ts, r.to_ts FROM spans w JOIN settled_ranges r USING (stream, series)
      WHERE r.to_ts > w.start_ts AND r.from_ts < w.end_ts)
    WINDOW ranges AS (PARTITION BY stream, series, target ORDER BY from_ts)
    UNION ALL SELECT stream, series, from_ts, to_ts, 'lost', reason FROM settled_ranges WHERE proof = 'lost')
  SELECT p.stream, nullif(s.index_type, '') AS index_type, nullif(s.index_id, '') AS index_id, nullif(s.name, '') AS name, p.from_ts, p.to_ts,
    ${sqliteDialect.moment("p.from_ts")} AS from_time, ${sqliteDialect.moment("p.to_ts")} AS to_time, p.state, p.reason, NULL AS lost_at
  FROM parts p JOIN series s USING (series) WHERE p.from_ts < p.to_ts`;

/** The rows of a key are ordered by `ts` alone: past versions are in no part. Each term of the union seeks a key. */
function partedRowsThen(stream: SnapshotStream, names: readonly string[]): string {
  const { storedTable, pastTable, keyColumn } = rowTables[stream];
  const columns = names.map((name) => (name === "source" ? sourceThen : `r.${name}`)).join(", ");
  const live = slotOf("p.part", `d.${keyColumn}`);
  return `SELECT r.slot AS ${keyColumn}, 0 AS part, ${columns} FROM main.${storedTable} r WHERE r.slot < ${slotOf("1", "0")} AND ${isCurrent}
    UNION ALL SELECT d.${keyColumn}, 0, ${columns} FROM main.${streamTable[stream].dictionary} d CROSS JOIN main.row_parts p CROSS JOIN main.${storedTable} r
      WHERE p.part > 0 AND r.slot = ${live} AND ${isCurrent}
    UNION ALL SELECT r.${keyColumn}, 0, ${columns} FROM main.${pastTable} r WHERE ${isPast}`;
}

const views: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.values(rowTables).map(({ stream, table, pastTable, keyColumn, columns }) => {
      if (isParted(stream)) return [table, partedRowsThen(stream, ["ts", ...columns])];
      const shown = columns.map((name) => (name === "source" ? sourceThen : name));
      return [table, versions(table, pastTable, [keyColumn, "ts", ...shown].join(", "))];
    }),
  ),
  settled_ranges: versions(
    "settled_ranges",
    "past_settled_ranges",
    "stream, series, from_ts, to_ts, proof, reason",
  ),
  ...Object.fromEntries(lookupTables.map((lookup) => [lookup.table, lookupThen(lookup)])),
  gaps: gapsThen,
  revision_rows: `SELECT * FROM main.revision_rows WHERE changed_at <= ${microsOf(shownAt)}`,
  status_changes: noticed("status_changes", "seen_at"),
  rejects: noticed("rejects", "received_at"),
  // A bar is stale that a later commit may have changed; an hour without a bar of now may have had ticks.
  kept_bars: `SELECT series, ts, open, high, low, close, volume_24h,
      CASE WHEN ifnull(last_commit, 0) <= ${SHOWN} THEN n_ticks END AS n_ticks, n_doubtful, details
    FROM main.kept_bars WHERE ifnull(first_commit, 0) <= ${SHOWN}
    UNION ALL SELECT DISTINCT series, ts - ts % ${HOUR}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM main.past_tick_rows p
    WHERE ${isPast} AND NOT EXISTS (SELECT 1 FROM main.kept_bars k
      WHERE k.series = p.series AND k.ts = p.ts - p.ts % ${HOUR} AND ifnull(k.first_commit, 0) <= ${SHOWN})`,
  warehouse_state: `SELECT *, (SELECT present FROM shown_commit) - CAST(strftime('%s', 'now') AS INTEGER) * 1000000 AS clock_skew
    FROM (SELECT one, epoch, views, request_rate, changes_id, changes_pruned, history_id, service_url FROM main.warehouse_state)`,
};

/** The relations that a statement reads and that have no earlier states. Throws a Failure if it names the newest state itself. */
export function findRelationsOfNow(connection: Connection, sql: string): string[] {
  const tables = connection.values<string>("SELECT name FROM main.sqlite_master WHERE type = 'table'");
  const ofNow = new Set(tables.filter((name) => !(name in views)));
  const tokens = [...readSqlTokens(sql)];
  if (tokens.some((token, at) => nameOf(token) === "main" && tokens[at + 1]?.text === "."))
    throw unknowable(
      "`main.` names the newest state",
      "leave it out: an earlier state has relations of the same names",
    );
  const isRead = (at: number) => /^(from|join|,)$/.test(tokens[at - 1]?.text ?? "");
  const named = tokens.filter((_, at) => isRead(at)).map(nameOf);
  return [...new Set(named)].filter((name) => name !== undefined && ofNow.has(name)) as string[];
}

/** Shows an earlier state on a reading connection, until another one is shown. Call it outside of a transaction that may fail. */
export function showKnownAt(connection: Connection, knownAt: KnownAt): void {
  const { database } = connection;
  if (connection.knownAt?.commit === knownAt.commit && connection.knownAt.present === knownAt.present) return;
  database.pragma("query_only = 0");
  try {
    if (connection.knownAt === undefined) {
      const hidden = Object.keys(views)
        .map((name) => `'${name}'`)
        .join(", ");
      const copied = connection.values<string>(
        `SELECT replace(sql, 'CREATE VIEW', 'CREATE TEMP VIEW') FROM main.sqlite_master WHERE type = 'view' AND name NOT IN (${hidden})`,
      );
      const definitions = Object.entries(views).map(([name, sql]) => `CREATE TEMP VIEW ${name} AS ${sql}`);
      database.exec(
        [
          "CREATE TEMP TABLE shown_commit (shown INTEGER NOT NULL, present INTEGER NOT NULL, at_text TEXT NOT NULL)",
          "INSERT INTO shown_commit VALUES (0, 0, '')",
          ...definitions,
          ...copied.map(withoutParts),
        ].join(";\n"),
      );
    }
    const { commit, present } = knownAt;
    const at = formatTimestamp(readCommit(connection, commit)?.at ?? present);
    connection.run("UPDATE shown_commit SET shown = ?, present = ?, at_text = ?", [commit, present, at]);
    connection.knownAt = knownAt;
  } finally {
    database.pragma("query_only = 1");
  }
}

/** Alone, or in a citation. */
const TOKEN = /(?:^|\sstate=)(\S+Z)@(\d+)-([0-9a-f]{12})$/;

/** What names the shown state in a paper: the present, the commit, and a digest that no other warehouse has. */
export function citeState(connection: Connection): string {
  const present = readPresentTs(connection);
  const commit = connection.knownAt?.commit ?? readLastCommit(connection);
  return `${formatTimestamp(present)}@${commit}-${digestCommit(connection, commit)}`;
}

/** The state that a token names; undefined if the text is none. Throws a Failure if it is not one of this warehouse. */
export function readToken(connection: Connection, text: string): KnownAt | undefined {
  const [, time = "", seq, digest] = TOKEN.exec(text) ?? [];
  const present = parseTimestamp(time);
  if (!text.includes("@")) return undefined;
  if (present === undefined)
    throw unknowable(`${text} is not a whole token`, "give it as `cite` printed it, TIME@COMMIT-DIGEST");
  const commit = Number(seq);
  if (commit > readLastCommit(connection))
    throw unknowable(`${text} cites a state that this warehouse never had`, "read the warehouse it is from");
  if (digestCommit(connection, commit) !== digest)
    throw unknowable(`${text} cites another warehouse`, "read that one, or a copy of it");
  return { commit, present };
}

/** This machine's clock, which dates commits. */
export function readMachineTs(connection: Connection): Micros {
  return connection.value<Micros>(
    "SELECT CAST((julianday('now') - 2440587.5) * 86400000 + 0.5 AS INTEGER) * 1000",
  );
}

/** The state at a moment by this machine's clock. Throws a Failure if the warehouse does not know it exactly. */
export function findKnownAt(connection: Connection, at: Micros): KnownAt {
  const text = formatTimestamp(at);
  const last = readLastCommit(connection);
  if (at > Math.max(readMachineTs(connection), readCommit(connection, last)?.at ?? 0))
    throw unknowable(`${text} is in the future`, "give a moment that is over");
  const low = findLastCommit(connection, last, at);
  if (low === undefined) {
    const begin = connection.findRow<{ at: Micros | null }>(`SELECT min(at) AS at FROM (${PARTS})`)?.at;
    throw unknowable(
      `what was known at ${text} cannot be shown: this warehouse keeps its past since ${begin ? formatTimestamp(begin) : "its next run"}`,
      "give a later moment",
    );
  }
  const next = readCommit(connection, low + 1);
  if (next && next.unknownFrom !== null && at > next.unknownFrom)
    throw unknowable(
      `what was known at ${text} cannot be shown: a copy from ${formatTimestamp(next.unknownFrom)} was restored at ${formatTimestamp(next.at)}`,
      "ask the file that `restore` has set aside",
    );
  return { commit: low, present: at + (readCommit(connection, low)?.clockSkew ?? 0) };
}

/** The first commit of each part within which moments ascend: the clock of the machine may be set back, and a copy restored. */
const PARTS =
  "SELECT seq, at FROM commits WHERE seq = 0 UNION ALL SELECT seq, at FROM commits WHERE unknown_from IS NOT NULL";

/** The last commit whose moment is not after `at`. */
function findLastCommit(connection: Connection, last: number, at: Micros): number | undefined {
  let high = last;
  for (const part of connection.rows<{ seq: number; at: Micros }>(`${PARTS} ORDER BY seq DESC`)) {
    if (part.at > at) {
      high = part.seq - 1;
      continue;
    }
    let low = part.seq;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((readCommit(connection, middle)?.at ?? 0) <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  return undefined;
}

interface CommitRow {
  readonly at: Micros;
  readonly unknownFrom: Micros | null;
  readonly clockSkew: Micros | null;
}

function readCommit(connection: Connection, seq: number): CommitRow | undefined {
  const sql = "SELECT at, unknown_from AS unknownFrom, clock_skew AS clockSkew FROM commits WHERE seq = ?";
  return connection.findRow<CommitRow>(sql, [seq]);
}

function readLastCommit(connection: Connection): number {
  return connection.value<number>("SELECT coalesce(max(seq), 0) FROM commits");
}

function digestCommit(connection: Connection, seq: number): string {
  const historyId = connection.value<number>("SELECT history_id FROM warehouse_state");
  const at = readCommit(connection, seq)?.at ?? 0;
  return createHash("sha256").update(`${historyId} ${seq} ${at}`).digest("hex").slice(0, 12);
}

function unknowable(message: string, remedy: string): Failure {
  return new Failure(message, { code: "usage", remedy });
}
