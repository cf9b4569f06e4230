import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import { targetStartSql } from "../views/gap-parts.ts";
import { sqliteDialect } from "../views/sqlite-dialect.ts";
import type { LedgerKey } from "./ledger.ts";

/** A ledger key by the columns of the views `coverage` and `gaps`. */
export interface NamedLedgerKey {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
}

/** The named key as text, for maps. Index types are free text from the service: the length tells where one ends. */
export function namedKeyText({ stream, index_type, index_id }: NamedLedgerKey): string {
  return `${stream} ${index_type?.length ?? 0} ${index_type ?? ""}${index_id ?? ""}`;
}

/** A ledger key with its names, and what the ledger knows about it. */
export interface LedgerKeySummary extends NamedLedgerKey {
  readonly stream: Stream;
  readonly name: string | null;
  /** Where its ledger begins; null: the ledger has no entry. */
  readonly firstTs: Micros | null;
  /** Where its ledger ends; null: the ledger has no entry, or the target has no end. */
  readonly endTs: Micros | null;
  /** The settings select it now. */
  readonly isSelected: boolean;
  /** A snapshot stream has no history: what was not received can never be fetched. */
  readonly isSnapshot: boolean;
  readonly serviceWindow: Micros | null;
}

/** A key that has an entry in the ledger. */
export interface KnownLedgerKey extends LedgerKeySummary, LedgerKey {
  readonly stream: Stream;
  readonly firstTs: Micros;
}

type LedgerKeyRow = Omit<KnownLedgerKey, "isSelected" | "isSnapshot"> & {
  readonly isSelected: 0 | 1;
  readonly isSnapshot: 0 | 1;
};

const ledgerKeysSql = `SELECT l.stream, l.series, nullif(s.index_type, '') AS index_type, nullif(s.index_id, '') AS index_id,
    nullif(s.name, '') AS name, min(l.from_ts) AS firstTs,
    CASE max(l.followed) WHEN 0 THEN max(l.to_ts) END AS endTs,
    max(l.followed) AS isSelected, max(l.is_snapshot) AS isSnapshot, max(l.service_window) AS serviceWindow
  FROM (SELECT w.stream, w.series, ${targetStartSql(sqliteDialect, sqliteDialect.presentTs)} AS from_ts, w.to_ts, w.to_ts IS NULL AS followed, w.is_snapshot,
      w.service_window FROM targets w
    UNION ALL SELECT stream, series, min(from_ts), max(to_ts), 0, 0, NULL FROM settled_ranges GROUP BY stream, series) l
  JOIN series s ON s.series = l.series
  GROUP BY l.stream, l.series ORDER BY l.stream, index_type, name, index_id`;

/** Every key of the ledger, by stream and name. */
export function readLedgerKeys(connection: Connection): KnownLedgerKey[] {
  const rows = connection.rows<LedgerKeyRow>(ledgerKeysSql);
  return rows.map((row) => ({ ...row, isSelected: row.isSelected === 1, isSnapshot: row.isSnapshot === 1 }));
}
