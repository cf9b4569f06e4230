import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type { CommitNews } from "../../model/answers/ticks.ts";
import { Failure } from "../../model/failure.ts";
import type { UnknownField } from "../../model/records.ts";
import { SecretRedactor } from "../../model/secret-redactor.ts";
import type { Stream } from "../../model/streams.ts";
import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { reopen } from "../../rule/apply.ts";
import { applyChanges, type LedgerKey, reopenNotFound } from "../../warehouse/coverage/ledger.ts";
import { recordNoContracts, recordRecheck } from "../../warehouse/coverage/rechecks.ts";
import { computeStaleBars, hasStaleBars } from "../../warehouse/rows/kept-bars.ts";
import { type MovePosition, moveLiveRows } from "../../warehouse/rows/move-live-rows.ts";
import { countUnknownEvent } from "../../warehouse/rows/rejects.ts";
import { type PrunableStream, prune } from "../../warehouse/rows/retention.ts";
import { recordStreamHealth } from "../../warehouse/rows/stream-stats.ts";
import { truncateLongWal, truncateWal } from "../../warehouse/sqlite/wal.ts";
import { recordSize } from "../../warehouse/tables/size-history.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import { recordClockSkew, recordJobRun, recordRequestRate } from "../../warehouse/tables/warehouse-state.ts";
import { openWriter, type WarehouseWriter, type WriterOptions } from "../../warehouse/writer.ts";
import { commitLiveFeedChange, commitLiveMessages, type LiveFeedChange, LiveState } from "../commit/live.ts";
import { commitLookup, commitService, type LookupList, type Service } from "../commit/lookup.ts";
import {
  commitForbiddenSnapshot,
  commitSnapshot,
  commitSnapshotCoverage,
  type SnapshotList,
} from "../commit/snapshot.ts";
import {
  commitBlockedReason,
  commitEndedTargets,
  commitLostRanges,
  commitSnapshotTargets,
  commitTargets,
} from "../commit/targets.ts";
import {
  CommittedPages,
  commitNotFound,
  commitWalkPage,
  type WalkPageCommitResult,
} from "../commit/walk-page.ts";
import { type Page, receivePage } from "../decode/read-page.ts";
import type { IngestCall, PageMessage, StoredReply, WalkPageCall } from "./messages.ts";

type Operation = (context: OperationRunner, args: never) => unknown;

/** What the main thread may call while the warehouse is open. */
const operations = {
  /** The pages of a reader that were not committed are not needed any more. */
  closePages: ({ pages }: OperationRunner, reader: number) => pages.close(reader),
  commitWalkPage(context: OperationRunner, call: WalkPageCall) {
    const result = commitPage(context, call);
    context.pages.drop(call);
    return result;
  },
  commitLookup: (
    { warehouse, pages }: OperationRunner,
    { reader, ...list }: LookupList & { reader: number },
  ) => commitLookup(warehouse, pages.list(list.stream, reader), list),
  commitService: (
    { warehouse, pages }: OperationRunner,
    { reader, ...service }: Service & { reader: number },
  ) => commitService(warehouse, pages.list("assets", reader), service),
  commitLiveMessages: ({ warehouse, live, redactor }: OperationRunner, messages: readonly string[]) =>
    commitLiveMessages(
      warehouse,
      live,
      messages.map((message) => redactor.redact(message)),
    ),
  /** Counts websocket events that this version does not know, each with a sample. */
  commitUnknownEvents: ({ warehouse, redactor }: OperationRunner, events: readonly UnknownField[]) =>
    warehouse.transaction((transaction) => {
      for (const { name, sample, count } of events)
        countUnknownEvent(transaction, {
          name: redactor.redact(name),
          sample: redactor.redact(sample),
          count,
        });
    }),
  commitLiveFeedChange: ({ warehouse, live }: OperationRunner, change: LiveFeedChange) =>
    commitLiveFeedChange(warehouse, live, change),
  listNewestTicks: ({ live }: OperationRunner, _: undefined) => live.skips.listNewestTicks(),
  /** Commits the pages that the reader has read since the last commit. */
  commitSnapshot(
    { warehouse, pages }: OperationRunner,
    { reader, ...list }: SnapshotList & { reader: number },
  ) {
    const results = pages.list(list.stream, reader).map((page) => commitSnapshot(warehouse, page, list));
    pages.drop({ reader });
    return results;
  },
  commitForbiddenSnapshot: inTransaction(commitForbiddenSnapshot),
  /** Settles a snapshot, or returns why it does not count. */
  commitSnapshotCoverage: inTransaction(commitSnapshotCoverage),
  commitTargets: inTransaction(commitTargets),
  commitEndedTargets: inTransaction(commitEndedTargets),
  commitSnapshotTargets: inTransaction(commitSnapshotTargets),
  commitLostRanges: inTransaction(commitLostRanges),
  commitNotFound: inTransaction(commitNotFound),
  /** The service serves an index again after a 404: its ranges are to be fetched again. */
  commitIndexFoundAgain: inTransaction(reopenNotFound),
  commitBlockedReason: inTransaction(commitBlockedReason),
  commitRecheck: inTransaction(recordRecheck),
  /** The service reports that an exchange has no contracts of a type. */
  commitNoContracts: inTransaction(recordNoContracts),
  commitStreamHealth: inTransaction(recordStreamHealth),
  /** The service's clock minus this machine's. */
  commitClockSkew: inTransaction(recordClockSkew),
  /** History requests a second, for `plan`. */
  commitRequestRate: inTransaction(recordRequestRate),
  /** Reopens a range that an audit found wrong and could not repair. */
  commitRetraction: inTransaction((transaction, { key, range }: { key: LedgerKey; range: TimeRange }) =>
    applyChanges(transaction, key, reopen([range])),
  ),
  commitJobRun: inTransaction(recordJobRun),
  commitFileSize: inTransaction(recordSize),
  /** Deletes one batch of rows older than the retention. Call it again with `nextKey` until there is none. */
  pruneBatch: inTransaction(
    (
      transaction,
      { stream, before, fromKey }: { stream: PrunableStream; before: Micros; fromKey?: number },
    ) => prune(transaction, stream, before, { fromKey }),
  ),
  /** Merges closed parts of live rows, or moves some rows to the history. Call it again with the result until there is none. */
  moveLiveRows: inTransaction((transaction, { from }: { from?: MovePosition | undefined }) =>
    moveLiveRows(transaction, from),
  ),
  /** The result of a background integrity check; undefined: no damage. */
  recordIntegrityCheck: ({ warehouse }: OperationRunner, damage: string | undefined) =>
    warehouse.recordCheckResult(damage),
  optimizeDatabase: ({ warehouse }: OperationRunner, _: undefined) => optimizeDatabase(warehouse),
  /** Shows that the thread responds. */
  ping: (_context: OperationRunner, _: undefined) => undefined,
  /** Checks that the file was not replaced, and truncates a WAL that a reader has blocked. */
  checkStorage: ({ warehouse }: OperationRunner, _: undefined) => {
    warehouse.assertFileInPlace();
    return truncateLongWal(warehouse.connection);
  },
} satisfies Record<string, Operation>;

/** Opening and closing, which run without an open warehouse. */
interface LifecycleOperations {
  open: (context: unknown, args: { path: string; mayDeferCheck: boolean }) => { isChecked: boolean };
  close: (context: unknown, args: { isSuspect: boolean }) => undefined;
}

type Operations = typeof operations & LifecycleOperations;
export type OperationName = keyof Operations;
export type OperationArgs<N extends OperationName> = Parameters<Operations[N]>[1];
export type OperationResult<N extends OperationName> = ReturnType<Operations[N]>;

/** Rows that ANALYZE samples per index: exact statistics of a large table would take minutes. */
const ANALYSIS_LIMIT_ROWS = 400;
/** About ten milliseconds of work, so that the next call hardly waits. */
const MAX_BARS_PER_STEP = 250;

/** Owns the warehouse and runs calls, one at a time. */
export class OperationRunner {
  #warehouse: WarehouseWriter | undefined;
  readonly redactor = new SecretRedactor("data");
  readonly pages: ReceivedPages;
  readonly committedPages = new CommittedPages();
  readonly live = new LiveState();
  /** The times of the call, because this thread has no clock of its own. */
  #times: Pick<IngestCall, "now" | "machineNow"> = { now: 0, machineNow: 0 };
  #news: CommitNews[] = [];
  readonly #options: Pick<WriterOptions, "log" | "onUpgrade">;

  constructor(pages: MessagePort, options: Pick<WriterOptions, "log" | "onUpgrade">) {
    this.pages = new ReceivedPages(pages);
    this.#options = options;
  }

  get warehouse(): WarehouseWriter {
    if (!this.#warehouse) throw new Error("the warehouse is not open");
    return this.#warehouse;
  }

  run(call: IngestCall): StoredReply {
    const before = this.#warehouse?.commitCount ?? -1;
    const value = this.#run(call);
    // Opening commits: it registers this process as the writer.
    const hasCommitted = (this.#warehouse?.commitCount ?? before) > before;
    return { value, hasCommitted, news: this.takeNews() };
  }

  #run({ operation, args, ...times }: IngestCall): unknown {
    this.#times = times;
    if (operation === "open") return this.#open(args as OperationArgs<"open">);
    if (operation === "close") return this.#close(args as OperationArgs<"close">);
    const run = operations[operation as keyof typeof operations] as Operation | undefined;
    if (!run) throw new Error(`unknown ingest operation: ${operation}`);
    return this.warehouse.runGuarded(() => run(this, args as never));
  }

  /**
   * Commits the pages of `commitWalkPage` calls in one transaction. Throws if storage fails. Undefined if one of the pages
   * fails; in both cases none is committed.
   */
  runPageCommits(calls: readonly IngestCall[]): readonly WalkPageCommitResult[] | undefined {
    let isPageFailure = false;
    // One commit, at the time of the last call.
    this.#times = calls.at(-1) ?? this.#times;
    try {
      const results = this.warehouse.groupTransactions(() => {
        isPageFailure = true;
        const committed = calls.map(({ args }) => commitPage(this, args as WalkPageCall));
        isPageFailure = false;
        return committed;
      });
      for (const { args } of calls) this.pages.drop(args as WalkPageCall);
      return results;
    } catch (error) {
      if (isPageFailure) return undefined;
      throw error;
    }
  }

  takeNews(): readonly CommitNews[] {
    const news = this.#news;
    this.#news = [];
    return news;
  }

  /** Runs after the reply, so that no caller waits for it. */
  shortenWal(walPages: number): void {
    this.#warehouse?.checkpointWal(walPages);
  }

  /**
   * Computes some of the stale bars, and returns whether there may be more. Nobody waits for them: after a failure, which
   * the next call will meet as well, the views go on computing them from the ticks.
   */
  computeStaleBars(): boolean {
    const warehouse = this.#warehouse;
    if (!warehouse) return false;
    try {
      return (
        warehouse.runGuarded(() => hasStaleBars(warehouse.connection, this.#times.now)) &&
        warehouse.transaction((transaction) => computeStaleBars(transaction, MAX_BARS_PER_STEP)) ===
          MAX_BARS_PER_STEP
      );
    } catch (error) {
      if (error instanceof Failure) return false;
      throw error;
    }
  }

  #open({ path, mayDeferCheck }: OperationArgs<"open">): ReturnType<LifecycleOperations["open"]> {
    const clock = { now: () => this.#times.machineNow / MICROS_PER_MS };
    const serviceNow = () => this.#times.now / MICROS_PER_MS;
    const onCommit = (news: CommitNews) => void this.#news.push(news);
    this.#warehouse = openWriter(path, { ...this.#options, clock, serviceNow, mayDeferCheck, onCommit });
    return { isChecked: this.#warehouse.isChecked };
  }

  #close(options: OperationArgs<"close">): undefined {
    this.#warehouse?.close(options);
    this.#warehouse = undefined;
  }
}

/** An operation that is one transaction. */
function inTransaction<A, R>(
  record: (transaction: Transaction, args: A) => R,
): (context: OperationRunner, args: A) => R {
  return ({ warehouse }, args) => warehouse.transaction((transaction) => record(transaction, args));
}

/** Refreshes stale planner statistics and truncates the WAL. */
export function optimizeDatabase({ connection }: WarehouseWriter): ReturnType<typeof truncateWal> {
  connection.database.pragma(`analysis_limit = ${ANALYSIS_LIMIT_ROWS}`);
  connection.database.pragma("optimize");
  return truncateWal(connection);
}

/** The page stays until its transaction is committed. */
function commitPage(
  { warehouse, pages, committedPages }: OperationRunner,
  { reader, number, ...page }: WalkPageCall,
): WalkPageCommitResult {
  return commitWalkPage(warehouse, committedPages, page, pages.get(reader, number));
}

/** The pages that the scan thread has decoded, by their reader: each stays until its commit, or until the reader is closed. */
class ReceivedPages {
  readonly #port: MessagePort;
  readonly #readers = new Map<number, Map<number, Page>>();

  constructor(port: MessagePort) {
    this.#port = port;
  }

  /** The page of a walk. The scan thread sends a page before anyone can name it, so it has arrived. */
  get(reader: number, number: number): Page {
    const page = this.#open(reader).get(number);
    if (!page) throw new Error("a page must be read before it is committed");
    return page;
  }

  list<S extends Stream>(_stream: S, reader: number): Page<S>[] {
    return [...this.#open(reader).values()] as Page<S>[];
  }

  /** Frees the page and those before it: the garbage collector would run three times a second for the columns. */
  drop({ reader, number = Number.POSITIVE_INFINITY }: { reader: number; number?: number }): void {
    const pages = this.#open(reader);
    for (const [at, page] of pages) {
      if (at > number) continue;
      page.columns?.ts.buffer.transfer(0);
      pages.delete(at);
    }
  }

  close(reader: number): void {
    this.drop({ reader });
    this.#readers.delete(reader);
  }

  #open(reader: number): Map<number, Page> {
    for (let next = receiveMessageOnPort(this.#port); next; next = receiveMessageOnPort(this.#port)) {
      const { reader: owner, number, page } = next.message as PageMessage;
      this.#find(owner).set(number, receivePage(page));
    }
    return this.#find(reader);
  }

  #find(reader: number): Map<number, Page> {
    const pages = this.#readers.get(reader) ?? new Map<number, Page>();
    this.#readers.set(reader, pages);
    return pages;
  }
}
