import { Failure } from "../model/failure.ts";
import { hasHistory, historyStreams, type RowStream, rowStreams } from "../model/streams.ts";
import type { Micros } from "../model/time.ts";
import { normalise, subtract, type TimeRange, type TimeRanges, union } from "../model/time-range.ts";
import type { SettledRange } from "../rule/answer.ts";
import { readSettledIn, readStoredRanges } from "../warehouse/coverage/ledger.ts";
import {
  type NewestRow,
  readNewestRows,
  readRange,
  readSettledKeys,
  readSubscriptions,
} from "../warehouse/read/forwarded-rows.ts";
import {
  type Change,
  canContinue,
  type JournalPosition,
  readChanges,
  readJournalPosition,
} from "../warehouse/tables/journal.ts";
import { readClockSkew } from "../warehouse/tables/warehouse-state.ts";
import { compareSnapshots, findLacking, rangesOf } from "./ledger-difference.ts";
import { LEDGER_TABLE } from "./schema/tables.ts";
import { ShareWriter, type ShareWriterOptions, type Unit } from "./share-writer.ts";
import { createRelations } from "./tables/relations.ts";
import { type ComparisonResult, compareShared } from "./verify.ts";

const MAX_CHANGES_PER_READ = 5_000;
/** Lookups and other small relations are compared completely, so not at every pass. */
const RELATIONS_INTERVAL_MS = 60_000;
/** A smaller difference between the clocks of this machine and the server's does not matter. */
const MIN_CLOCK_DIFFERENCE_MS = 2_000;

const snapshotStreams = rowStreams.filter((stream) => !hasHistory(stream));

export const ALL_TIME: TimeRange = { from: Number.MIN_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER };

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

/** A key with its ledger, as it was at one moment. */
interface KeyLedger {
  readonly stream: RowStream;
  readonly series: number;
  readonly ledger: readonly SettledRange[];
}

/** Brings PostgreSQL to the state of the SQLite file. Any failure leaves it behind, never ahead: create a new one. */
export class Forwarder {
  readonly #options: ShareWriterOptions;
  readonly #relations: ReturnType<typeof createRelations>;
  readonly writer: ShareWriter;
  /** Up to where the journal is applied. */
  #position = 0;
  /** PostgreSQL has everything up to there; until then the difference of the ledgers shows what it lacks. */
  #isLoaded = false;
  /** Every covered range is being compared: until that is done, the position must not be stored. */
  #isComparing = false;
  #relationsAt = Number.NEGATIVE_INFINITY;

  constructor(options: ShareWriterOptions) {
    this.#options = options;
    this.writer = new ShareWriter(options);
    this.#relations = createRelations({ ...options, dictionaries: this.writer.dictionaries });
  }

  /** Reads what PostgreSQL has. Returns what is to be compared: months that were away, or everything. */
  async load(): Promise<TimeRanges> {
    const { connection, lease, clock } = this.#options;
    const returned = await this.writer.rows.months.load(clock.now());
    await this.writer.dictionaries.reload();
    await this.#loadState();
    const position = readJournalPosition(connection);
    const [stored] = await lease.session.query<{ seq: string; is_loaded: boolean }>(
      "SELECT seq, is_loaded FROM mds.positions WHERE changes_id = $1",
      [position.id],
    );
    if (stored && canContinue(position, { id: position.id, seq: Number(stored.seq) })) {
      this.#position = Number(stored.seq);
      this.#isLoaded = stored.is_loaded;
      return returned;
    }
    // Changes from now on are applied; those before are found by the comparison.
    this.#isComparing = this.writer.rows.hasLedger;
    await this.#storePosition(position);
    return this.#isComparing ? [ALL_TIME] : [];
  }

  async #loadState(): Promise<void> {
    const { lease } = this.#options;
    await lease.renewIfDue();
    await this.writer.rows.load();
    await lease.renewIfDue();
    this.#relationsAt = Number.NEGATIVE_INFINITY;
  }

  /** Compares the covered ranges inside `within` when it is iterated. */
  compare(within: TimeRanges): AsyncGenerator<ComparisonResult> {
    return compareShared(this.writer, this.#options, within);
  }

  /** Every covered range was compared: from now on the position says what is applied. */
  async endComparison(): Promise<void> {
    this.#isComparing = false;
    const position = readJournalPosition(this.#options.connection);
    await this.#storePosition({ ...position, seq: this.#position });
  }

  /** Stores that every change up to here is applied. */
  async #storePosition({ id, seq }: Pick<JournalPosition, "id" | "seq">): Promise<void> {
    this.#position = seq;
    if (this.#isComparing) return;
    const sql = `INSERT INTO mds.positions (changes_id, seq, moved_at, is_loaded)
      VALUES (${id}, ${seq}, statement_timestamp(), ${this.#isLoaded}) ON CONFLICT (changes_id)
      DO UPDATE SET seq = excluded.seq, moved_at = excluded.moved_at, is_loaded = excluded.is_loaded`;
    await this.#options.lease.run(sql);
  }

  /** Forwards everything that has changed until now. */
  async forward(): Promise<ForwardResult> {
    const { connection, lease, clock } = this.#options;
    const { writer } = this;
    const commitsBefore = lease.commits;
    writer.counts = { rows: 0, ranges: 0 };
    let relations = 0;
    // Read before the dictionaries: every key that it names is known after them.
    const position = readJournalPosition(connection);
    const isDue = clock.monotonic() - this.#relationsAt >= RELATIONS_INTERVAL_MS;
    if (isDue || writer.dictionaries.hasNewKeys()) {
      relations += await writer.dictionaries.update();
      if (writer.dictionaries.hasAdopted) await this.#loadState();
    }
    if (!this.#isLoaded) await this.#forwardWhole(position);
    await this.#applyJournal(position, this.#position);
    await writer.rows.months.createIndexes();
    if (isDue) {
      await this.#lookForOddities();
      for (const update of this.#relations) relations += await update();
      await writer.rows.bars.compute(clock);
      await this.#storeClockSkew();
      this.#relationsAt = clock.monotonic();
    }
    return { ...writer.counts, relations, commits: lease.commits - commitsBefore };
  }

  /** Forwards all that PostgreSQL lacks. Rows are read after the ledgers, so they are at least as new. */
  async #forwardWhole({ id }: JournalPosition): Promise<void> {
    const { connection } = this.#options;
    const ledgers = this.#readLedgers(() => readSettledKeys(connection));
    // The journal has everything that is committed from here on.
    const newest = rowStreams.map((stream) => ({ stream, rows: readNewestRows(connection, stream) }));
    await this.#forwardGrowth(ledgers);
    const lacking = ledgers.map(({ stream, series, ledger }) => {
      const pieces = findLacking(ledger, this.writer.rows.ledgerFor(stream, series));
      return { stream, series, ranges: pieces.filter(({ kind }) => kind === "replace") };
    });
    // Newer rows than any there are appended below.
    await this.#mergeSnapshotRows(lacking, (stream, key) => this.writer.rows.newestOf(stream, key) + 1);
    for (const { stream, rows } of newest) await this.#forwardNewRows(stream, rows);
    await this.#forwardSnapshotLedgers(ledgers);
    this.#isLoaded = true;
    await this.#storePosition({ id, seq: this.#position });
  }

  #readLedgers(keys: () => readonly Omit<KeyLedger, "ledger">[]): KeyLedger[] {
    const { connection } = this.#options;
    const read = connection.database.transaction(() =>
      keys().map((key) => ({ ...key, ledger: readStoredRanges(connection, key) })),
    );
    return read();
  }

  /** The growth of history streams: each range with its rows. */
  async #forwardGrowth(ledgers: readonly KeyLedger[]): Promise<void> {
    for (const stream of historyStreams) {
      const units = ledgers
        .filter((key) => key.stream === stream)
        .flatMap(({ series, ledger }) =>
          findLacking(ledger, this.writer.rows.ledgerFor(stream, series)).map(
            ({ kind, from, to }): Unit => ({ key: series, range: { from, to }, kind }),
          ),
        );
      await this.writer.replaceRanges(stream, units);
    }
  }

  /** Merges the rows of ranges of subscriptions, of each key up to `endOf`: another daemon may have forwarded some. */
  async #mergeSnapshotRows(
    subscribed: readonly { stream: RowStream; series: number; ranges: readonly TimeRange[] }[],
    endOf: (stream: RowStream, key: number) => Micros,
  ): Promise<void> {
    for (const stream of snapshotStreams) {
      const own = subscribed.filter((each) => each.stream === stream && each.ranges.length > 0);
      if (own.length === 0) continue;
      const bySeries = new Map(own.map(({ series, ranges }) => [series, ranges]));
      const subscriptions = [...readSubscriptions(this.#options.connection, stream)];
      const units = subscriptions.flatMap(([key, series]): Unit[] => {
        if (!this.writer.knows(stream, key)) return [];
        const end = endOf(stream, key);
        const ranges = series.flatMap((each) => bySeries.get(each) ?? []);
        const merged = normalise(ranges.map(({ from, to }) => ({ from, to: Math.min(to, end) })));
        return toFewRanges(merged).map((range) => ({ key, range, kind: "merge" }));
      });
      await this.writer.replaceRanges(stream, units);
    }
  }

  /** Whether this file has snapshots that the leader has not seen. Needs no lease, and little of PostgreSQL. */
  async hasOwnSnapshots(): Promise<boolean> {
    const { connection, lease } = this.#options;
    const ranges = await lease.session.query<SettledRange & { stream: RowStream; id: string }>(
      `SELECT l.stream, s.index_id AS id, l.from_ts::double precision AS "from", l.to_ts::double precision AS "to", l.proof, l.reason
      FROM mds.${LEDGER_TABLE} l JOIN mds.series s USING (series) WHERE s.index_type = '' ORDER BY l.from_ts`,
    );
    const shared = Map.groupBy(ranges, ({ stream, id }) => `${stream} ${id}`);
    return this.#readSnapshotLedgers().some(({ stream, series, ledger }) => {
      const id = connection.value<string>("SELECT index_id FROM series WHERE series = ?", [series]);
      const { seen, takenBack } = this.#testify(ledger, shared.get(`${stream} ${id}`) ?? []);
      return seen.length + takenBack.length > 0;
    });
  }

  #testify(ledger: readonly SettledRange[], shared: readonly SettledRange[]) {
    return compareSnapshots(ledger, shared, `seen by ${this.#options.name}`);
  }

  /** Forwards these snapshots, with the lease of the leader. */
  async forwardOwnSnapshots(): Promise<void> {
    // Before the dictionaries: every key that has rows in these ranges is known after them.
    const ledgers = this.#readSnapshotLedgers();
    // The next load of everything compares a month that was away.
    await this.writer.rows.months.load(this.#options.clock.now(), "DELETE FROM mds.positions");
    await this.writer.dictionaries.reload();
    await this.writer.rows.loadLedger();
    const parts = ledgers.map((key) => {
      const { seen, takenBack } = this.#testify(
        key.ledger,
        this.writer.rows.ledgerFor(key.stream, key.series),
      );
      return { ...key, ranges: seen, takenBack };
    });
    await this.#mergeSnapshotRows(parts, () => Number.POSITIVE_INFINITY);
    for (const { stream, series, ledger, ranges, takenBack } of parts) {
      await this.writer.commitLedger(stream, series, ranges, ranges);
      const lost = ledger.filter(({ proof }) => proof === "lost");
      await this.writer.commitLedger(stream, series, takenBack, lost);
    }
  }

  #readSnapshotLedgers(): KeyLedger[] {
    const { connection } = this.#options;
    return this.#readLedgers(() => readSettledKeys(connection).filter(({ stream }) => !hasHistory(stream)));
  }

  /** Rows above the newest one there: those of snapshot streams, and live rows, which have no proof. */
  async #forwardNewRows(stream: RowStream, rows: readonly NewestRow[]): Promise<void> {
    const units = rows.flatMap(({ key, ts }): Unit[] => {
      if (!this.writer.knows(stream, key)) return [];
      const from = this.writer.rows.newestOf(stream, key) + 1;
      return from > ts ? [] : [{ key, range: { from, to: ts + 1 }, kind: "append" }];
    });
    await this.writer.replaceRanges(stream, units);
  }

  /** Applies the changes after `from`: the state of each range is read again. */
  async #applyJournal(position: JournalPosition, from: number): Promise<void> {
    const { connection } = this.#options;
    for (let after = from; after < position.seq; ) {
      const changes = readChanges(connection, { after, until: position.seq, limit: MAX_CHANGES_PER_READ });
      // Read the ledgers before the rows.
      const ledgers = this.#readLedgers(() => keysOfSnapshotLedgers(changes));
      for (const [stream, own] of Map.groupBy(changes, (change) => change.stream)) {
        if (hasHistory(stream)) await this.writer.replaceRanges(stream, this.#findHistoryUnits(stream, own));
        else {
          await this.writer.replaceRanges(stream, this.#findSnapshotUnits(stream, own));
          for (const { key, kind, from, to } of own)
            if (kind === "retracted") await this.#retractLedgerPart(stream, key, { from, to });
        }
      }
      await this.#forwardSnapshotLedgers(ledgers);
      after = changes.length < MAX_CHANGES_PER_READ ? position.seq : (changes.at(-1)?.seq ?? position.seq);
      await this.#storePosition({ ...position, seq: after });
    }
  }

  #findHistoryUnits(stream: RowStream, changes: readonly Change[]): Unit[] {
    return [...Map.groupBy(changes, ({ key }) => key)].flatMap(([key, ranges]) =>
      this.#findAffected(stream, key, ranges).map((range): Unit => ({ key, range, kind: "replace" })),
    );
  }

  /** Where only another daemon has proven a range, a changed row of this one says nothing about it. */
  #findAffected(stream: RowStream, series: number, changes: readonly Change[]): TimeRanges {
    if (this.#options.role === "alone") return normalise(changes);
    const own = readStoredRanges(this.#options.connection, { stream, series });
    const [shared, covered] = [this.writer.rows.ledgerFor(stream, series), own].map((ledger) =>
      rangesOf(ledger, "rows", "empty"),
    ) as [TimeRanges, TimeRanges];
    const foreign = subtract(shared, covered);
    const retracted = changes.filter(({ kind }) => kind === "retracted");
    return union(normalise(retracted), subtract(normalise(changes), foreign));
  }

  #findSnapshotUnits(stream: RowStream, changes: readonly Change[]): Unit[] {
    const rows = changes.filter(({ kind }) => kind === "rows");
    return [...Map.groupBy(rows, ({ key }) => key)].flatMap(([key, ranges]) =>
      normalise(ranges).map(
        (range): Unit => ({ key, range, kind: this.#mustMerge(stream, key, range) ? "merge" : "replace" }),
      ),
    );
  }

  /** Another daemon may have observed snapshots that this one has not. A range without rows here was pruned. */
  #mustMerge(stream: RowStream, key: number, range: TimeRange): boolean {
    if (this.#options.role === "alone" || range.from > this.writer.rows.newestOf(stream, key)) return false;
    return readRange(this.#options.connection, { stream, key }, range, 1).rows.length > 0;
  }

  async #retractLedgerPart(stream: RowStream, series: number, range: TimeRange): Promise<void> {
    const content = readSettledIn(this.#options.connection, { stream, series }, range);
    // What was covered again may have rows that are not forwarded yet: it is entered after them, or by the next pass.
    const lost = content.filter(({ proof }) => proof === "lost");
    await this.writer.commitLedger(stream, series, [range], lost);
  }

  /** The ledgers of snapshot streams, as they were before the rows were read. */
  async #forwardSnapshotLedgers(ledgers: readonly KeyLedger[]): Promise<void> {
    for (const { stream, series, ledger } of ledgers.filter((key) => !hasHistory(key.stream))) {
      const lacking = findLacking(ledger, this.writer.rows.ledgerFor(stream, series));
      await this.writer.commitLedger(stream, series, lacking, ledger);
    }
  }

  /** A standby may have been promoted beside this primary, and a person may have changed the months. */
  async #lookForOddities(): Promise<void> {
    const { lease, report } = this.#options;
    const { newer, older } = await lease.session.findOtherWriters();
    if (newer.length > 0)
      throw new Failure(`${newer.join(", ")} was promoted`, {
        code: "share_read_only",
        remedy: "forwarding goes on there; stop the former primary: its readers see old rows",
      });
    await this.writer.rows.months.assertUnchanged();
    const warning = `${older.join(", ")} accepts writes too: stop it, its readers see old rows`;
    report?.({ kind: "warning", message: older.length === 0 ? "" : warning });
  }

  async #storeClockSkew(): Promise<void> {
    const { connection, lease, clock } = this.#options;
    const [row] = await lease.session.query<{ now: number; skew: string }>(
      "SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now, clock_skew AS skew FROM mds.source",
    );
    const difference = clock.now() - (row?.now ?? clock.now());
    const offset = Math.abs(difference) < MIN_CLOCK_DIFFERENCE_MS ? 0 : Math.round(difference) * 1000;
    const skew: Micros = readClockSkew(connection) + offset;
    if (Math.abs(Number(row?.skew) - skew) < (offset === 0 ? 1 : MIN_CLOCK_DIFFERENCE_MS * 1000)) return;
    const sql = `UPDATE mds.source SET clock_skew = ${skew}, stored_at = statement_timestamp()`;
    await lease.run(sql);
  }
}

function keysOfSnapshotLedgers(changes: readonly Change[]): { stream: RowStream; series: number }[] {
  const named = changes.filter(({ stream, kind }) => !hasHistory(stream) && kind !== "rows");
  const byName = new Map(named.map(({ stream, key }) => [`${stream} ${key}`, { stream, series: key }]));
  return [...byName.values()];
}

/** One read over all ranges of a key is faster than many short reads. */
const MAX_RANGES_PER_KEY = 20;

function toFewRanges(ranges: readonly TimeRange[]): readonly TimeRange[] {
  if (ranges.length <= MAX_RANGES_PER_KEY) return ranges;
  return [{ from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 }];
}
