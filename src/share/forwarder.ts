import { hasHistory, historyStreams, type RowStream, rowStreams, streamTable } from "../model/streams.ts";
import type { Micros } from "../model/time.ts";
import { normalise, subtract, type TimeRange } from "../model/time-range.ts";
import type { Clock } from "../runtime/clock.ts";
import {
  type ChangePosition,
  readChangePosition,
  readChanges,
} from "../warehouse/coverage/changed-ranges.ts";
import type { SettledRange } from "../warehouse/coverage/ledger.ts";
import { readClockSkew } from "../warehouse/coverage/targets.ts";
import {
  type ForwardedRow,
  readConsistently,
  readLedgerFingerprints,
  readLedgerPart,
  readRange,
  readRowKeys,
  readRowsAfter,
  readWholeLedger,
} from "../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { rowTables } from "../warehouse/tables/row-tables.ts";
import { combinePieces, findLacking, type LedgerPiece } from "./ledger-difference.ts";
import { inFence, type Lease, renewLease } from "./server/lease.ts";
import type { SharedSession } from "./server/session.ts";
import { SharedDictionaries } from "./tables/dictionaries.ts";
import { SharedRelations } from "./tables/relations.ts";
import { SharedRows } from "./tables/row-store.ts";

/** Rows of one transaction: more gain little, and keep the rows of a range longer from its readers. */
const MAX_ROWS_PER_TRANSACTION = 20_000;
/** Ranges of one transaction: a first load has thousands of series without any row. */
const MAX_UNITS_PER_TRANSACTION = 500;
const MAX_CHANGES_PER_READ = 5_000;
/** Lookups and other small relations are compared whole: not at every pass. */
const RELATIONS_INTERVAL_MS = 60_000;
/** A smaller difference between the clocks of this machine and the server's does not matter. */
const MIN_CLOCK_DIFFERENCE_MS = 2_000;

export interface ForwardResult {
  /** Rows of streams that were copied. */
  readonly rows: number;
  /** Ranges whose coverage was entered or changed. */
  readonly ranges: number;
  /** Rows of lookups and other small relations that were written. */
  readonly relations: number;
  /** Transactions that changed something. */
  readonly commits: number;
}

export interface ForwardProgress {
  readonly rows: number;
  readonly doneMicros: number;
  readonly plannedMicros: number;
}

export interface ForwarderOptions {
  readonly connection: Connection;
  readonly session: SharedSession;
  readonly lease: Lease;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ForwardProgress) => void;
}

interface Snapshot {
  readonly position: ChangePosition;
  readonly changed: readonly {
    readonly stream: RowStream;
    readonly series: number;
    readonly fingerprint: string;
    readonly ledger: readonly SettledRange[];
  }[];
}

/** A range of one key to be replaced: rows with their coverage. */
interface Unit {
  readonly key: number;
  readonly range: TimeRange;
  readonly kind: LedgerPiece["kind"];
}

/** Brings PostgreSQL to the state of the SQLite file. Any failure leaves it behind, never ahead: create a new one. */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #dictionaries: SharedDictionaries;
  readonly #relations: SharedRelations;
  readonly rows: SharedRows;
  /** The ledger that was forwarded last, by stream and series. */
  readonly #fingerprints = new Map<string, string>();
  #position: number | undefined;
  #renewedAt: number;
  #relationsAt = Number.NEGATIVE_INFINITY;
  readonly #counts = { rows: 0, ranges: 0, relations: 0, commits: 0 };
  #planned = 0;
  #done = 0;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#dictionaries = new SharedDictionaries(options.session);
    this.#relations = new SharedRelations(options.session, this.#dictionaries);
    this.rows = new SharedRows(options.session, this.#dictionaries);
    this.#renewedAt = options.clock.monotonic();
  }

  /** Reads what PostgreSQL has. Returns false if the changes since its last state are unknown: compare everything. */
  async load(): Promise<boolean> {
    const { connection, session } = this.#options;
    await this.#dictionaries.load();
    await this.#dictionaries.update(connection, this.inTransaction);
    await this.rows.load();
    await this.#relations.load();
    const position = readChangePosition(connection);
    const [stored] = await session.query<{ seq: string }>(
      "SELECT seq FROM mds.positions WHERE changes_id = $1",
      [position.id],
    );
    if (stored) this.#position = Number(stored.seq);
    const isKnown = stored && Number(stored.seq) >= position.firstSeq && Number(stored.seq) <= position.seq;
    if (!isKnown && this.rows.hasLedger) return false;
    if (!isKnown) await this.storePosition(position);
    return true;
  }

  /** Stores that every change up to here is applied. */
  async storePosition({ id, seq }: ChangePosition): Promise<void> {
    const sql = `INSERT INTO mds.positions VALUES (${id}, ${seq}, statement_timestamp())
      ON CONFLICT (changes_id) DO UPDATE SET seq = excluded.seq, moved_at = excluded.moved_at`;
    await this.inTransaction(async () => void (await this.#options.session.query(sql)));
    this.#position = seq;
  }

  /** Forwards everything that differs now. */
  async forward(): Promise<ForwardResult> {
    const { connection, clock } = this.#options;
    const before = { ...this.#counts };
    const snapshot = this.#readSnapshot();
    const isDue = clock.monotonic() - this.#relationsAt >= RELATIONS_INTERVAL_MS;
    if (isDue || this.#dictionaries.hasNewKeys(connection))
      this.#counts.relations += await this.#dictionaries.update(connection, this.inTransaction);
    const forwarded = new Map<string, TimeRange[]>();
    await this.#forwardGrowth(snapshot, forwarded);
    for (const stream of rowStreams) await this.#forwardNewRows(stream);
    await this.#applyChanges(snapshot.position, forwarded);
    await this.#forwardSnapshotLedgers(snapshot);
    for (const { stream, series, fingerprint } of snapshot.changed)
      this.#fingerprints.set(`${stream} ${series}`, fingerprint);
    if (isDue) {
      this.#counts.relations += await this.#relations.update(connection, this.inTransaction);
      await this.#storeClockSkew();
      this.#relationsAt = clock.monotonic();
    }
    const { rows, ranges, relations, commits } = this.#counts;
    return {
      rows: rows - before.rows,
      ranges: ranges - before.ranges,
      relations: relations - before.relations,
      commits: commits - before.commits,
    };
  }

  /** What is known of the SQLite file at one moment. Rows are read later, so they are at least as new. */
  #readSnapshot(): Snapshot {
    const { connection } = this.#options;
    return readConsistently(connection, () => ({
      position: readChangePosition(connection),
      changed: readLedgerFingerprints(connection)
        .filter(
          ({ stream, series, fingerprint }) => this.#fingerprints.get(`${stream} ${series}`) !== fingerprint,
        )
        .map((key) => ({ ...key, ledger: readWholeLedger(connection, key) })),
    }));
  }

  /** The growth of history streams: each range with its rows. */
  async #forwardGrowth({ changed }: Snapshot, forwarded: Map<string, TimeRange[]>): Promise<void> {
    for (const stream of historyStreams) {
      const units: Unit[] = [];
      for (const { series, ledger } of changed.filter((key) => key.stream === stream)) {
        for (const { kind, from, to } of findLacking(ledger, this.rows.ledgerFor(stream, series)))
          units.push({ key: series, range: { from, to }, kind });
      }
      this.#planned += units.reduce((sum, { range }) => sum + range.to - range.from, 0);
      await this.replaceRanges(stream, units);
      for (const { key, range } of units) append(forwarded, `${stream} ${key}`, range);
    }
  }

  /** Replaces ranges, several of them in one transaction while they have few rows. */
  async replaceRanges(stream: RowStream, units: readonly Unit[]): Promise<void> {
    let batch: {
      readonly unit: Unit;
      readonly rows: readonly ForwardedRow[];
      readonly ledger: readonly SettledRange[];
    }[] = [];
    let rows = 0;
    const flush = async () => {
      if (batch.length > 0) await this.#commitBatch(stream, batch);
      batch = [];
      rows = 0;
    };
    for (const unit of units) {
      for (let { from } = unit.range; from < unit.range.to; ) {
        const rest = { from, to: unit.range.to };
        const content = readRange(
          this.#options.connection,
          { stream, key: unit.key },
          rest,
          MAX_ROWS_PER_TRANSACTION - rows,
        );
        const part = { ...unit, range: { from, to: content.to } };
        if (content.to > from) batch.push({ unit: part, rows: content.rows, ledger: content.ledger });
        rows += content.rows.length;
        const isCut = content.to < unit.range.to;
        from = content.to;
        if (isCut || rows >= MAX_ROWS_PER_TRANSACTION || batch.length >= MAX_UNITS_PER_TRANSACTION)
          await flush();
      }
    }
    await flush();
  }

  async #commitBatch(
    stream: RowStream,
    batch: readonly {
      readonly unit: Unit;
      readonly rows: readonly ForwardedRow[];
      readonly ledger: readonly SettledRange[];
    }[],
  ): Promise<void> {
    const { session } = this.#options;
    const covered = batch.filter(({ unit }) => unit.kind === "rows");
    const lost = batch.filter(({ unit }) => unit.kind === "lost").flatMap(({ rows }) => rows);
    const replaced = covered.flatMap(({ rows }) => rows);
    const all = [...replaced, ...lost];
    await this.rows.createPartitions(stream, all);
    const deletions = covered
      .filter(({ unit }) => Number.isFinite(this.rows.newestOf(stream, unit.key)))
      .map(({ unit }) => this.rows.deleteSql(stream, unit.key, unit.range));
    const ledger: { readonly sql: string; readonly apply: () => void }[] = [];
    await this.inTransaction(async () => {
      if (deletions.length > 0) await session.query(deletions.join("; "));
      if (replaced.length > 0) await this.rows.copyRows(stream, this.rows.encode(stream, replaced));
      if (lost.length > 0) await this.rows.mergeRows(stream, this.rows.encode(stream, lost));
      if (hasHistory(stream))
        for (const { unit, ledger: content } of batch) {
          const change = this.rows.replaceLedger(stream, unit.key, unit.range, content);
          // Ranges of the same key follow one another, and each builds on the one before.
          change.apply();
          ledger.push(change);
        }
      const sql = ledger.map((change) => change.sql).filter((text) => text !== "");
      if (sql.length > 0) await session.query(sql.join("; "));
    });
    this.rows.raiseNewest(stream, all);
    this.#counts.rows += all.length;
    this.#counts.ranges += ledger.length;
    this.#reportProgress(batch.reduce((sum, { unit }) => sum + unit.range.to - unit.range.from, 0));
  }

  /** Rows above the newest one there: those of snapshot streams, and live rows, which have no proof. */
  async #forwardNewRows(stream: RowStream): Promise<void> {
    const { connection } = this.#options;
    const { tsOfStored } = rowTables[stream];
    let pending: ForwardedRow[] = [];
    const flush = async () => {
      if (pending.length > 0) await this.#appendRows(stream, pending);
      pending = [];
    };
    for (const key of readRowKeys(connection, stream)) {
      if (!this.knows(stream, key)) continue;
      for (let after = this.rows.newestOf(stream, key); ; ) {
        const rows = readRowsAfter(
          connection,
          { stream, key },
          after,
          MAX_ROWS_PER_TRANSACTION - pending.length,
        );
        const last = rows.at(-1);
        if (!last) break;
        for (const row of rows) pending.push(row);
        after = tsOfStored(last[1]);
        if (pending.length < MAX_ROWS_PER_TRANSACTION) break;
        await flush();
      }
    }
    await flush();
  }

  async #appendRows(stream: RowStream, rows: readonly ForwardedRow[]): Promise<void> {
    await this.rows.createPartitions(stream, rows);
    const bytes = this.rows.encode(stream, rows);
    await this.inTransaction(() => this.rows.copyRows(stream, bytes));
    this.rows.raiseNewest(stream, rows);
    this.#counts.rows += rows.length;
    this.#reportProgress(0);
  }

  /** Applies the recorded changes: the state of each range is read again. */
  async #applyChanges(position: ChangePosition, forwarded: ReadonlyMap<string, TimeRange[]>): Promise<void> {
    const { connection } = this.#options;
    for (let after = this.#position ?? position.seq; after < position.seq; ) {
      const changes = readChanges(connection, { after, until: position.seq, limit: MAX_CHANGES_PER_READ });
      for (const stream of rowStreams) {
        const own = changes.filter((change) => change.stream === stream);
        if (hasHistory(stream)) await this.#applyToHistory(stream, own, forwarded);
        else {
          await this.#applyToSnapshots(
            stream,
            own.filter(({ isLedger }) => isLedger === 0),
          );
          for (const { key, ...range } of own.filter(({ isLedger }) => isLedger === 1))
            await this.#replaceLedgerPart(stream, key, range);
        }
      }
      after = changes.length < MAX_CHANGES_PER_READ ? position.seq : (changes.at(-1)?.seq ?? position.seq);
      await this.storePosition({ ...position, seq: after });
    }
  }

  async #applyToHistory(
    stream: RowStream,
    changes: readonly ({ readonly key: number } & TimeRange)[],
    forwarded: ReadonlyMap<string, TimeRange[]>,
  ): Promise<void> {
    const units = [...Map.groupBy(changes, ({ key }) => key)].flatMap(([key, ranges]) =>
      // What this pass has forwarded was read after the changes were recorded.
      subtract(normalise(ranges), normalise(forwarded.get(`${stream} ${key}`) ?? [])).map(
        (range): Unit => ({ key, range, kind: "rows" }),
      ),
    );
    await this.replaceRanges(stream, units);
  }

  /** The rows above the newest one there are forwarded as new ones. */
  async #applyToSnapshots(
    stream: RowStream,
    changes: readonly ({ readonly key: number } & TimeRange)[],
  ): Promise<void> {
    const units = [...Map.groupBy(changes, ({ key }) => key)].flatMap(([key, ranges]) =>
      normalise(
        ranges.map(({ from, to }) => ({ from, to: Math.min(to, this.rows.newestOf(stream, key) + 1) })),
      ).map((range): Unit => ({ key, range, kind: "rows" })),
    );
    await this.replaceRanges(stream, units);
  }

  async #replaceLedgerPart(stream: RowStream, series: number, range: TimeRange): Promise<void> {
    const content = readLedgerPart(this.#options.connection, { stream, series }, range);
    // What was covered again may have rows that are not forwarded yet: it is entered after them, or by the next pass.
    await this.#commitLedger(
      stream,
      series,
      range,
      content.filter(({ proof }) => proof === "lost"),
    );
    this.#fingerprints.delete(`${stream} ${series}`);
  }

  async #commitLedger(
    stream: RowStream,
    series: number,
    range: TimeRange,
    content: readonly SettledRange[],
  ): Promise<void> {
    if (this.#dictionaries.find("series", series) === undefined) return;
    const change = this.rows.replaceLedger(stream, series, range, content);
    if (change.sql === "") return;
    await this.inTransaction(async () => void (await this.#options.session.query(change.sql)));
    change.apply();
    this.#counts.ranges++;
  }

  /** The ledgers of snapshot streams, as they were before the rows were read. */
  async #forwardSnapshotLedgers({ changed }: Snapshot): Promise<void> {
    for (const { stream, series, ledger } of changed.filter((key) => !hasHistory(key.stream)))
      for (const { range, content } of combinePieces(
        ledger,
        this.rows.ledgerFor(stream, series),
        MAX_UNITS_PER_TRANSACTION,
      ))
        await this.#commitLedger(stream, series, range, content);
  }

  async #storeClockSkew(): Promise<void> {
    const { connection, session, clock } = this.#options;
    const [row] = await session.query<{ now: number; skew: string }>(
      "SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now, clock_skew AS skew FROM mds.source",
    );
    const difference = clock.now() - (row?.now ?? clock.now());
    const offset = Math.abs(difference) < MIN_CLOCK_DIFFERENCE_MS ? 0 : Math.round(difference) * 1000;
    const skew: Micros = readClockSkew(connection) + offset;
    if (Math.abs(Number(row?.skew) - skew) < (offset === 0 ? 1 : MIN_CLOCK_DIFFERENCE_MS * 1000)) return;
    const sql = `UPDATE mds.source SET clock_skew = ${skew}, stored_at = statement_timestamp()`;
    await this.inTransaction(async () => void (await session.query(sql)));
  }

  /** Whether PostgreSQL has an entry for the key. */
  knows(stream: RowStream, key: number): boolean {
    return this.#dictionaries.find(streamTable[stream].dictionary, key) !== undefined;
  }

  readonly inTransaction = async <T>(work: () => Promise<T>): Promise<T> => {
    const { session, lease, signal } = this.#options;
    signal.throwIfAborted();
    await this.renewIfDue();
    const result = await inFence(session, lease, work);
    this.#counts.commits++;
    return result;
  };

  /** Extends the lease; call it also while there is nothing to forward. */
  async renewIfDue(): Promise<void> {
    const { session, lease, clock } = this.#options;
    if (clock.monotonic() - this.#renewedAt <= (lease.seconds * 1000) / 3) return;
    await renewLease(session, lease);
    this.#renewedAt = clock.monotonic();
  }

  #reportProgress(done: Micros): void {
    this.#done += done;
    this.#options.onProgress?.({
      rows: this.#counts.rows,
      doneMicros: this.#done,
      plannedMicros: this.#planned,
    });
  }
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}
