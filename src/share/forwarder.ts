import { hasHistory, historyStreams, type RowStream, rowStreams } from "../model/streams.ts";
import type { Micros } from "../model/time.ts";
import { normalise, subtract, type TimeRange, type TimeRanges, union } from "../model/time-range.ts";
import type { SettledRange } from "../rule/answer.ts";
import { readClockSkew } from "../warehouse/coverage/targets.ts";
import {
  type ForwardedRow,
  readConsistently,
  readLedgerFingerprints,
  readLedgerPart,
  readRange,
  readRowKeys,
  readRowsAfter,
  readSubscriptions,
  readWholeLedger,
} from "../warehouse/read/forwarded-rows.ts";
import {
  type Change,
  canContinue,
  type JournalPosition,
  readChanges,
  readJournalPosition,
} from "../warehouse/tables/journal.ts";
import { rowTables } from "../warehouse/tables/row-tables.ts";
import { combinePieces, findLacking } from "./ledger-difference.ts";
import {
  MAX_ROWS_PER_TRANSACTION,
  MAX_UNITS_PER_TRANSACTION,
  ShareWriter,
  type ShareWriterOptions,
  type Unit,
} from "./share-writer.ts";
import { SharedRelations } from "./tables/relations.ts";

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

interface Snapshot {
  readonly position: JournalPosition;
  readonly changed: readonly {
    readonly stream: RowStream;
    readonly series: number;
    readonly fingerprint: string;
    readonly ledger: readonly SettledRange[];
  }[];
}

/** Brings PostgreSQL to the state of the SQLite file. Any failure leaves it behind, never ahead: create a new one. */
export class Forwarder {
  readonly #options: ShareWriterOptions;
  readonly #relations: SharedRelations;
  readonly writer: ShareWriter;
  /** The ledger that was forwarded last, by stream and series. */
  readonly #fingerprints = new Map<string, string>();
  #position: number | undefined;
  /** Every covered range is being compared: until that is done, the position must not be stored. */
  #isComparing = false;
  #isFirstPass = true;
  #relationsAt = Number.NEGATIVE_INFINITY;

  constructor(options: ShareWriterOptions) {
    const { session, role } = options;
    this.#options = options;
    this.writer = new ShareWriter(options);
    this.#relations = new SharedRelations(session, this.writer.dictionaries, role);
  }

  /** Reads what PostgreSQL has. Returns false if the changes since its last state are unknown: compare everything. */
  async load(): Promise<boolean> {
    const { connection, session } = this.#options;
    await this.writer.dictionaries.load();
    await this.writer.dictionaries.update(connection, this.writer.inTransaction);
    this.writer.dictionaries.hasAdopted();
    await this.#loadState();
    const position = readJournalPosition(connection);
    const [stored] = await session.query<{ seq: string }>(
      "SELECT seq FROM mds.positions WHERE changes_id = $1",
      [position.id],
    );
    if (stored) this.#position = Number(stored.seq);
    const isKnown = stored && canContinue(position, { id: position.id, seq: Number(stored.seq) });
    if (isKnown) return true;
    if (this.writer.rows.hasLedger) {
      // Changes from now on are applied; those before are found by the comparison.
      this.#position = position.seq;
      this.#isComparing = true;
      return false;
    }
    await this.#storePosition(position);
    return true;
  }

  async #loadState(): Promise<void> {
    await this.writer.renewIfDue();
    await this.writer.rows.load();
    await this.writer.renewIfDue();
    await this.#relations.load(this.#options.connection);
    this.#isFirstPass = true;
    this.#relationsAt = Number.NEGATIVE_INFINITY;
  }

  /** Every covered range was compared: from now on the position tells what is applied. */
  async endComparison(): Promise<void> {
    this.#isComparing = false;
    const position = readJournalPosition(this.#options.connection);
    await this.#storePosition({ ...position, seq: this.#position ?? position.seq });
  }

  /** Stores that every change up to here is applied. */
  async #storePosition({ id, seq }: Pick<JournalPosition, "id" | "seq">): Promise<void> {
    this.#position = seq;
    if (this.#isComparing) return;
    const sql = `INSERT INTO mds.positions VALUES (${id}, ${seq}, statement_timestamp())
      ON CONFLICT (changes_id) DO UPDATE SET seq = excluded.seq, moved_at = excluded.moved_at`;
    await this.writer.inTransaction(async () => void (await this.#options.session.query(sql)));
  }

  /** Forwards everything that differs now. */
  async forward(): Promise<ForwardResult> {
    const { connection, clock } = this.#options;
    const before = { ...this.writer.counts };
    let relations = 0;
    const snapshot = this.#readSnapshot();
    const isDue = clock.monotonic() - this.#relationsAt >= RELATIONS_INTERVAL_MS;
    if (isDue || this.writer.dictionaries.hasNewKeys(connection)) {
      relations += await this.writer.dictionaries.update(connection, this.writer.inTransaction);
      if (this.writer.dictionaries.hasAdopted()) await this.#loadState();
    }
    const forwarded = new Map<string, TimeRange[]>();
    await this.#forwardGrowth(snapshot, forwarded);
    if (this.#isFirstPass) await this.#mergeSnapshotRows(snapshot);
    for (const stream of rowStreams) await this.#forwardNewRows(stream);
    await this.#applyChanges(snapshot.position, forwarded);
    await this.#forwardSnapshotLedgers(snapshot);
    for (const { stream, series, fingerprint } of snapshot.changed)
      this.#fingerprints.set(`${stream} ${series}`, fingerprint);
    this.#isFirstPass = false;
    if (isDue) {
      relations += await this.#relations.update(connection, this.writer.inTransaction);
      await this.#storeClockSkew();
      this.#relationsAt = clock.monotonic();
    }
    const { rows, ranges, commits } = this.writer.counts;
    return {
      rows: rows - before.rows,
      ranges: ranges - before.ranges,
      relations,
      commits: commits - before.commits,
    };
  }

  /** What is known of the SQLite file at one moment. Rows are read later, so they are at least as new. */
  #readSnapshot(): Snapshot {
    const { connection } = this.#options;
    return readConsistently(connection, () => ({
      position: readJournalPosition(connection),
      changed: readLedgerFingerprints(connection)
        .filter(
          ({ stream, series, fingerprint }) => this.#fingerprints.get(`${stream} ${series}`) !== fingerprint,
        )
        .map((key) => ({ ...key, ledger: this.writer.withoutMovedHere(readWholeLedger(connection, key)) })),
    }));
  }

  /** The growth of history streams: each range with its rows. */
  async #forwardGrowth({ changed }: Snapshot, forwarded: Map<string, TimeRange[]>): Promise<void> {
    for (const stream of historyStreams) {
      const units: Unit[] = [];
      for (const { series, ledger } of changed.filter((key) => key.stream === stream)) {
        for (const { kind, from, to } of findLacking(ledger, this.writer.rows.ledgerFor(stream, series)))
          units.push({ key: series, range: { from, to }, kind });
      }
      this.writer.plannedMicros += units.reduce((sum, { range }) => sum + range.to - range.from, 0);
      await this.writer.replaceRanges(stream, units);
      for (const { key, range } of units) append(forwarded, `${stream} ${key}`, range);
    }
  }

  /** Rows that this file has proven, and that are older than what another daemon has forwarded. */
  async #mergeSnapshotRows({ changed }: Snapshot): Promise<void> {
    const { connection } = this.#options;
    for (const stream of rowStreams.filter((each) => !hasHistory(each))) {
      const lacking = new Map<number, TimeRange[]>();
      for (const { series, ledger } of changed.filter((key) => key.stream === stream))
        for (const { kind, from, to } of findLacking(ledger, this.writer.rows.ledgerFor(stream, series)))
          if (kind === "replace") append(lacking, series, { from, to });
      if (lacking.size === 0) continue;
      const units: Unit[] = [];
      for (const [key, subscriptions] of readSubscriptions(connection, stream)) {
        const newest = this.writer.rows.newestOf(stream, key);
        if (!Number.isFinite(newest)) continue;
        const ranges = subscriptions.flatMap((series) => lacking.get(series) ?? []);
        const older = normalise(ranges.map(({ from, to }) => ({ from, to: Math.min(to, newest + 1) })));
        for (const range of toFewRanges(older)) units.push({ key, range, kind: "merge" });
      }
      await this.writer.replaceRanges(stream, units);
    }
  }

  /** Rows above the newest one there: those of snapshot streams, and live rows, which have no proof. */
  async #forwardNewRows(stream: RowStream): Promise<void> {
    const { connection } = this.#options;
    const { tsOfStored } = rowTables[stream];
    let pending: ForwardedRow[] = [];
    const flush = async () => {
      if (pending.length > 0) await this.writer.appendRows(stream, pending);
      pending = [];
    };
    for (const key of readRowKeys(connection, stream)) {
      if (!this.writer.knows(stream, key)) continue;
      for (let after = this.writer.rows.newestOf(stream, key); ; ) {
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

  /** Applies the recorded changes: the state of each range is read again. */
  async #applyChanges(position: JournalPosition, forwarded: ReadonlyMap<string, TimeRange[]>): Promise<void> {
    const { connection } = this.#options;
    for (let after = this.#position ?? position.seq; after < position.seq; ) {
      const changes = readChanges(connection, { after, until: position.seq, limit: MAX_CHANGES_PER_READ });
      for (const stream of rowStreams) {
        const own = changes.filter((change) => change.stream === stream);
        if (hasHistory(stream)) await this.#applyToHistory(stream, own, forwarded);
        else {
          await this.#applyToSnapshots(
            stream,
            own.filter(({ kind }) => kind === "rows"),
          );
          for (const { key, ...range } of own.filter(({ kind }) => kind === "ledger"))
            await this.#replaceLedgerPart(stream, key, range);
        }
      }
      after = changes.length < MAX_CHANGES_PER_READ ? position.seq : (changes.at(-1)?.seq ?? position.seq);
      await this.#storePosition({ ...position, seq: after });
    }
  }

  async #applyToHistory(
    stream: RowStream,
    changes: readonly Change[],
    forwarded: ReadonlyMap<string, TimeRange[]>,
  ): Promise<void> {
    const units = [...Map.groupBy(changes, ({ key }) => key)].flatMap(([key, ranges]) =>
      // What this pass has forwarded was read after the changes were recorded.
      subtract(
        this.#findAffected(stream, key, ranges),
        normalise(forwarded.get(`${stream} ${key}`) ?? []),
      ).map((range): Unit => ({ key, range, kind: "replace" })),
    );
    await this.writer.replaceRanges(stream, units);
  }

  /** Where only another daemon has proven a range, a changed row of this one says nothing about it. */
  #findAffected(stream: RowStream, series: number, changes: readonly Change[]): TimeRanges {
    const own = readWholeLedger(this.#options.connection, { stream, series });
    // Rows that have left the file since must not leave PostgreSQL.
    const moved = normalise(own.filter(({ proof }) => proof === "moved"));
    if (this.writer.role === "alone") return subtract(normalise(changes), moved);
    const foreign = subtract(coveredPart(this.writer.rows.ledgerFor(stream, series)), coveredPart(own));
    const [rows, ledger] = (["rows", "ledger"] as const).map((kind) =>
      normalise(changes.filter((change) => change.kind === kind)),
    ) as [TimeRanges, TimeRanges];
    return subtract(union(ledger, subtract(rows, foreign)), moved);
  }

  /** The rows above the newest one there are forwarded as new ones. */
  async #applyToSnapshots(
    stream: RowStream,
    changes: readonly ({ readonly key: number } & TimeRange)[],
  ): Promise<void> {
    const units = [...Map.groupBy(changes, ({ key }) => key)].flatMap(([key, ranges]) =>
      normalise(
        ranges.map(({ from, to }) => ({
          from,
          to: Math.min(to, this.writer.rows.newestOf(stream, key) + 1),
        })),
      ).map(
        (range): Unit => ({ key, range, kind: this.#mustMerge(stream, key, range) ? "merge" : "replace" }),
      ),
    );
    await this.writer.replaceRanges(stream, units);
  }

  /** Another daemon may have observed snapshots that this one has not. A range without rows here was pruned. */
  #mustMerge(stream: RowStream, key: number, range: TimeRange): boolean {
    if (this.writer.role === "alone") return false;
    return readRange(this.#options.connection, { stream, key }, range, 1).rows.length > 0;
  }

  async #replaceLedgerPart(stream: RowStream, series: number, range: TimeRange): Promise<void> {
    const content = readLedgerPart(this.#options.connection, { stream, series }, range);
    // What was covered again may have rows that are not forwarded yet: it is entered after them, or by the next pass.
    await this.writer.commitLedger(
      stream,
      series,
      range,
      content.filter(({ proof }) => proof === "lost"),
    );
    this.#fingerprints.delete(`${stream} ${series}`);
  }

  /** The ledgers of snapshot streams, as they were before the rows were read. */
  async #forwardSnapshotLedgers({ changed }: Snapshot): Promise<void> {
    for (const { stream, series, ledger } of changed.filter((key) => !hasHistory(key.stream)))
      for (const { range, content } of combinePieces(
        ledger,
        this.writer.rows.ledgerFor(stream, series),
        MAX_UNITS_PER_TRANSACTION,
      ))
        await this.writer.commitLedger(stream, series, range, content);
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
    await this.writer.inTransaction(async () => void (await session.query(sql)));
  }
}

function coveredPart(ledger: readonly SettledRange[]): TimeRanges {
  return normalise(ledger.filter(({ proof }) => proof !== "lost"));
}

/** Reading a key once over all of them is faster than many short reads. */
const MAX_RANGES_PER_KEY = 20;

function toFewRanges(ranges: readonly TimeRange[]): readonly TimeRange[] {
  if (ranges.length <= MAX_RANGES_PER_KEY) return ranges;
  return [{ from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 }];
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}
