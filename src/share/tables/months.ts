import { Failure, failureCode } from "../../model/failure.ts";
import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { ForwardedRow } from "../../warehouse/read/forwarded-rows.ts";
import { DETACHED_REASON } from "../ledger-difference.ts";
import { enterStaleSql } from "../schema/bar-views.ts";
import {
  LEDGER_TABLE,
  MAX_PARTITION_YEAR,
  MIN_PARTITION_YEAR,
  rowLayouts,
  timeCheck,
  timeIndexSql,
} from "../schema/tables.ts";
import type { Lease } from "../server/lease.ts";
import { BUILD_TIMEOUT_MS, type SharedSession, WITHOUT_WAITING } from "../server/session.ts";

/*
 * Ticks are partitioned by month. An operator may detach one: its ranges become lost, rows of it are not forwarded, and when it
 * is attached again the ledger says what it said before.
 */

const partitioned = Object.values(rowLayouts).filter(({ isPartitioned }) => isPartitioned);

interface MonthTable extends TimeRange {
  readonly stream: RowStream;
  /** `index_tick_rows_2026_11`. */
  readonly name: string;
}

/** What became of the table of a month. */
interface MonthState {
  readonly name: string;
  readonly exists: boolean;
  readonly isAttached: boolean;
  /** It has the index on `time`. */
  readonly isIndexed: boolean;
  /** What the ledger knows. Null: it was never entered. */
  readonly wasDetached: boolean | null;
}

/** The months of the partitioned tables: which there are, and which are detached. */
export class SharedMonths {
  readonly #lease: Lease;
  readonly #session: SharedSession;
  readonly #attached = new Set<string>();
  #detached: readonly MonthTable[] = [];
  /** Attached, without the index on `time`. */
  readonly #unindexed = new Set<string>();

  constructor(lease: Lease) {
    this.#lease = lease;
    this.#session = lease.session;
  }

  /**
   * Attaches months that are not over, then brings the ledger in line with the attached ones. Returns the months that were
   * attached again. `also`: a statement that a change of months needs.
   */
  async load(now: number, also = ""): Promise<TimeRanges> {
    const states = await this.#readStates();
    const needed = states
      .filter(({ exists, isAttached }) => exists && !isAttached)
      .map(({ name }) => parseName(name))
      .filter(({ to }) => to > now * 1000);
    if (needed.length === 0 && !states.some(isChanged)) return this.#keep(states);
    return this.#lease.transaction(async () => {
      if (also !== "") await this.#session.query(also);
      for (const month of needed) await this.#attach(month);
      return this.#reconcile();
    });
  }

  async #attach(month: MonthTable): Promise<void> {
    try {
      await this.#session.query(`${WITHOUT_WAITING}; ${attachSql(month)}`, undefined, BUILD_TIMEOUT_MS);
    } catch (error) {
      if (failureCode(error) !== "share_bug") throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new Failure(
        `mds.${month.name}, a month that is not over, was detached and cannot be attached: ${reason}`,
        {
          code: "share_changed",
          remedy: "mend that table, or drop or rename it: then it is made again, and its ticks are forwarded",
        },
      );
    }
  }

  /** Throws if someone has attached, detached or dropped a month since it was loaded. */
  async assertUnchanged(): Promise<void> {
    const changed = (await this.#readStates()).filter(isChanged).map(({ name }) => `mds.${name}`);
    if (changed.length === 0) return;
    throw new Failure(
      `someone has attached, detached or dropped ${changed.join(", ")} in the shared warehouse`,
      {
        code: "share_changed",
        remedy: "forwarding goes on in a moment: a month that is not over is attached or made again",
      },
    );
  }

  detachedOf(stream: RowStream): TimeRanges {
    return normalise(this.#detached.filter((month) => month.stream === stream));
  }

  /** Creates the partitions of the rows' months. */
  async createFor(stream: RowStream, rows: readonly ForwardedRow[]): Promise<void> {
    if (!rowLayouts[stream].isPartitioned) return;
    const months = new Map<string, MonthTable>();
    let last: TimeRange | undefined;
    for (const [, time] of rows) {
      const ts = Number(time);
      if (last && last.from <= ts && ts < last.to) continue;
      const date = new Date(ts / 1000);
      const month = monthTable(stream, date.getUTCFullYear(), date.getUTCMonth());
      last = month;
      if (month && !this.#attached.has(month.name)) months.set(month.name, month);
    }
    if (months.size === 0) return;
    // Attaching a complete table to one without default partition blocks neither readers nor writers.
    const { table } = rowLayouts[stream];
    const statements = [...months.values()].map((month) => {
      const { name, from, to } = month;
      return `CREATE TABLE mds.${name} (LIKE mds.${table} INCLUDING ALL, ${timeCheck(from, to)});
        ${attachSql(month)}; ${enterSql(name, false)}`;
    });
    await this.#lease.run([WITHOUT_WAITING, ...statements].join("; "));
    for (const name of months.keys()) {
      this.#attached.add(name);
      this.#unindexed.add(name);
    }
  }

  /** Creates the indexes on `time`. Call it when a first load is over: it would take longer with them. */
  async createIndexes(): Promise<void> {
    for (const name of this.#unindexed) {
      const { key } = rowLayouts[parseName(name).stream];
      await this.#lease.run(`${WITHOUT_WAITING}; ${timeIndexSql(name, key)}`, BUILD_TIMEOUT_MS);
      this.#unindexed.delete(name);
    }
  }

  async #readStates(): Promise<MonthState[]> {
    const parents = partitioned.map(({ table }) => table);
    return this.#session.query<MonthState>(
      `WITH tables AS (SELECT c.relname::text AS name, i.inhrelid IS NOT NULL AND NOT i.inhdetachpending AS is_attached
        FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE c.relnamespace = 'mds'::regnamespace AND c.relname ~ '^(${parents.join("|")})_[0-9]{4}_[0-9]{2}$')
      SELECT name, t.is_attached IS NOT NULL AS exists, coalesce(t.is_attached, false) AS "isAttached",
        to_regclass('mds.' || name || '_time') IS NOT NULL AS "isIndexed", m.is_detached AS "wasDetached"
      FROM tables t FULL JOIN mds.months m USING (name)`,
    );
  }

  #keep(states: readonly MonthState[]): TimeRanges {
    this.#attached.clear();
    this.#unindexed.clear();
    for (const { name, isAttached, isIndexed } of states) {
      if (isAttached) this.#attached.add(name);
      if (isAttached && !isIndexed) this.#unindexed.add(name);
    }
    this.#detached = states
      .filter((state) => !state.isAttached && state.wasDetached)
      .map(({ name }) => parseName(name));
    return [];
  }

  /** Inside a transaction: enters what became of the months, and changes their ledger. */
  async #reconcile(): Promise<TimeRanges> {
    const states = await this.#readStates();
    const returned: TimeRange[] = [];
    const statements = states.filter(isChanged).flatMap(({ name, exists, isAttached, wasDetached }) => {
      const month = parseName(name);
      const isLost = `proof = 'lost' AND reason = '${DETACHED_REASON}'`;
      if (isAttached) {
        if (wasDetached) returned.push(month);
        return [
          ...(wasDetached ? [replaceSql(month, isLost, { proof: "'rows'", reason: "NULL" })] : []),
          ...(month.stream === "index_ticks" ? [enterStaleSql(name)] : []),
          enterSql(name, false),
        ];
      }
      const deletion = `DELETE FROM mds.kept_bars WHERE ts >= ${month.from} AND ts < ${month.to}`;
      const bars = month.stream === "index_ticks" ? [deletion] : [];
      if (exists)
        return [
          ...bars,
          replaceSql(month, "proof = 'rows'", { proof: "'lost'", reason: `'${DETACHED_REASON}'` }),
          enterSql(name, true),
        ];
      // Someone has dropped it: whatever a file still has is forwarded again.
      return [
        ...bars,
        replaceSql(month, "true", undefined),
        `DELETE FROM mds.months WHERE name = '${name}'; UPDATE mds.positions SET is_loaded = false`,
      ];
    });
    if (statements.length > 0) await this.#session.query(statements.join("; "), undefined, BUILD_TIMEOUT_MS);
    this.#keep(await this.#readStates());
    return normalise(returned);
  }
}

/** Whether the ledger does not know yet what became of the month. */
function isChanged({ exists, isAttached, wasDetached }: MonthState): boolean {
  return isAttached ? wasDetached !== false : exists ? wasDetached !== true : wasDetached === false;
}

function monthTable(stream: RowStream, year: number, month: number): MonthTable | undefined {
  const from = new Date(Date.UTC(year, month, 1));
  const fullYear = from.getUTCFullYear();
  if (!(fullYear >= MIN_PARTITION_YEAR && fullYear <= MAX_PARTITION_YEAR)) return undefined;
  const suffix = from.toISOString().slice(0, 7).replace("-", "_");
  return {
    stream,
    name: `${rowLayouts[stream].table}_${suffix}`,
    from: from.getTime() * 1000,
    to: Date.UTC(fullYear, from.getUTCMonth() + 1, 1) * 1000,
  };
}

function parseName(name: string): MonthTable {
  const layout = partitioned.find(({ table }) => name.slice(0, -"_2026_11".length) === table);
  const month = layout && monthTable(layout.stream, Number(name.slice(-7, -3)), Number(name.slice(-2)) - 1);
  if (!month) throw new Error(`${name} is no month of ticks`);
  return month;
}

function attachSql({ stream, name, from, to }: MonthTable): string {
  return `ALTER TABLE mds.${rowLayouts[stream].table} ATTACH PARTITION mds.${name} FOR VALUES FROM (${from}) TO (${to})`;
}

function enterSql(name: string, isDetached: boolean): string {
  return `INSERT INTO mds.months (name, is_detached) VALUES ('${name}', ${isDetached})
    ON CONFLICT (name) DO UPDATE SET is_detached = excluded.is_detached`;
}

/** Replaces proof and reason of a month in the ledger, or removes it; what touches and is equal afterwards becomes one range. */
function replaceSql(
  { stream, from, to }: TimeRange & { readonly stream: RowStream },
  condition: string,
  change: { readonly proof: string; readonly reason: string } | undefined,
): string {
  const bounds = (first: Micros | string, last: Micros | string) => `${first} AS from_ts, ${last} AS to_ts`;
  const content = change
    ? `CASE WHEN is_changed THEN ${change.proof} ELSE proof END, CASE WHEN is_changed THEN ${change.reason} ELSE reason END`
    : "proof, reason";
  return `WITH touched AS (DELETE FROM mds.${LEDGER_TABLE} WHERE stream = '${stream}' AND from_ts <= ${to} AND to_ts >= ${from}
      RETURNING *, ${condition} AS is_changed),
    parts AS (SELECT series, proof, reason, ${bounds("from_ts", `least(to_ts, ${from})`)} FROM touched WHERE from_ts < ${from}
      UNION ALL SELECT series, proof, reason, ${bounds(`greatest(from_ts, ${to})`, "to_ts")} FROM touched WHERE to_ts > ${to}
      UNION ALL SELECT series, ${content}, ${bounds(`greatest(from_ts, ${from})`, `least(to_ts, ${to})`)}
        FROM touched WHERE ${change !== undefined} AND from_ts < ${to} AND to_ts > ${from})
  INSERT INTO mds.${LEDGER_TABLE} (stream, series, from_ts, to_ts, proof, reason)
  SELECT '${stream}', series, lower(r), upper(r), proof, reason FROM (SELECT series, proof, reason,
    unnest(range_agg(int8range(from_ts, to_ts))) AS r FROM parts GROUP BY 1, 2, 3) x`;
}
