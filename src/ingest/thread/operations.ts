import type { Body } from "../../model/response-body.ts";
import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import { keepLines, type LogLine } from "../../runtime/log.ts";
import { type ContractsDenial, hasNoContracts } from "../../warehouse/coverage/rechecks.ts";
import { truncateWal } from "../../warehouse/sqlite/wal.ts";
import { openWarehouse, type Warehouse } from "../../warehouse/writer.ts";
import {
  commitClockSkew,
  commitHindrance,
  commitJobRun,
  commitLosses,
  commitNoContracts,
  commitReread,
  commitRetraction,
  commitServedAgain,
  commitSize,
  commitStreamNotes,
  commitUnserved,
  pruneBite,
  tidy,
} from "../commit/bookkeeping.ts";
import { commitLive, commitUnknownEvents } from "../commit/live.ts";
import { Listening, type ListeningChange } from "../commit/live-coverage.ts";
import { commitLookup, type LookupList } from "../commit/lookup.ts";
import {
  commitSnapshot,
  ObservedLists,
  type SnapshotPage,
  type SubscriptionSeen,
} from "../commit/snapshot.ts";
import { commitSubscriptions, commitWanted } from "../commit/targets.ts";
import { AskedPages, commitWalkPage, type WalkPage } from "../commit/walk-page.ts";
import { HeldPages, type PageQuestion } from "../decode/pending-pages.ts";
import type { Call } from "./messages.ts";

/** What an operation works with, in the ingest thread. */
interface Desk {
  readonly warehouse: Warehouse;
  readonly pages: HeldPages;
  readonly asked: AskedPages;
  readonly listening: Listening;
  readonly lists: ObservedLists;
  readonly now: Micros;
}

type Operation = (desk: Desk, args: never, bodies: readonly Body[]) => unknown;

/** What the main thread may ask of the ingest thread once the warehouse is open. */
const operations = {
  /** Reads a body and keeps the page here, for a commit to name. */
  readPage: ({ pages }: Desk, question: PageQuestion, bodies: readonly Body[]) =>
    pages.read(question, onlyBody(bodies)),
  dropPages: ({ pages }: Desk, held: readonly number[]) => pages.drop(held),
  commitWalkPage({ warehouse, pages, asked, now }: Desk, page: WalkPage) {
    const commit = commitWalkPage(warehouse, { pages, asked, now }, page);
    pages.drop([page.held]);
    return commit;
  },
  commitLookup({ warehouse, pages }: Desk, list: LookupList) {
    const commit = commitLookup(warehouse, pages, list);
    pages.drop(list.held);
    return commit;
  },
  commitLive: ({ warehouse, listening }: Desk, messages: readonly string[]) =>
    commitLive(warehouse, messages, listening),
  commitUnknownEvents: onWarehouse(commitUnknownEvents),
  commitListening: ({ warehouse, listening }: Desk, change: ListeningChange) =>
    listening.change(warehouse, change),
  commitSnapshot({ warehouse, pages }: Desk, page: SnapshotPage) {
    const commit = commitSnapshot(warehouse, pages, page);
    pages.drop([page.held]);
    return commit;
  },
  /** What was taken of a subscription counts as an observation, or why it does not. */
  commitObservation: ({ warehouse, lists }: Desk, seen: SubscriptionSeen) => lists.commit(warehouse, seen),
  commitWanted: onWarehouse(commitWanted),
  commitSubscriptions: onWarehouse(commitSubscriptions),
  commitLosses: onWarehouse(commitLosses),
  commitUnserved: onWarehouse(commitUnserved),
  commitServedAgain: onWarehouse(commitServedAgain),
  commitHindrance: onWarehouse(commitHindrance),
  commitReread: onWarehouse(commitReread),
  commitNoContracts: onWarehouse(commitNoContracts),
  /** Whether it was said today already. */
  hasNoContracts: ({ warehouse }: Desk, denial: ContractsDenial) =>
    hasNoContracts(warehouse.connection, denial),
  commitStreamNotes: onWarehouse(commitStreamNotes),
  commitClockSkew: onWarehouse(commitClockSkew),
  commitRetraction: onWarehouse(commitRetraction),
  commitJobRun: onWarehouse(commitJobRun),
  commitSize: onWarehouse(commitSize),
  pruneBite: onWarehouse(pruneBite),
  /** What a check of the file beside the work has found; undefined: it is sound. */
  noteCheck: ({ warehouse }: Desk, damage: string | undefined) => warehouse.noteCheck(damage),
  tidy: ({ warehouse }: Desk, _: undefined) => tidy(warehouse),
  /** Shows that the thread is alive. */
  answer: (_desk: Desk, _: undefined) => undefined,
  /** Each minute: that the file is still ours, and how long the WAL has become. */
  checkStorage: ({ warehouse }: Desk, _: undefined) => {
    warehouse.assertFileInPlace();
    return truncateWal(warehouse.connection);
  },
} satisfies Record<string, Operation>;

/** Opening and closing, which stand at both ends of the others. */
interface Lifecycle {
  open: (
    desk: unknown,
    args: { path: string; mayDeferCheck: boolean },
  ) => {
    isChecked: boolean;
    /** What there was to say about the file. */
    said: readonly LogLine[];
  };
  close: (desk: unknown, args: { isSuspect: boolean }) => undefined;
}

type Operations = typeof operations & Lifecycle;
export type OperationName = keyof Operations;
export type OperationArgs<N extends OperationName> = Parameters<Operations[N]>[1];
export type OperationResult<N extends OperationName> = ReturnType<Operations[N]>;

/** Holds the warehouse and carries out calls, one at a time. */
export class IngestDesk {
  #warehouse: Warehouse | undefined;
  readonly #pages = new HeldPages();
  readonly #asked = new AskedPages();
  readonly #listening = new Listening();
  readonly #lists = new ObservedLists();
  #now: Micros = 0;

  carryOut({ operation, args, bodies, now }: Call): { value: unknown; hasCommitted: boolean } {
    this.#now = now;
    // Who opens the warehouse writes to it, that it is the writer now.
    if (operation === "open") return { value: this.#open(args as OperationArgs<"open">), hasCommitted: true };
    if (operation === "close")
      return { value: this.#close(args as OperationArgs<"close">), hasCommitted: false };
    const warehouse = this.#warehouse;
    if (!warehouse) throw new Error("the warehouse is not open");
    const work = operations[operation as keyof typeof operations] as Operation | undefined;
    if (!work) throw new Error(`there is no operation ${operation}`);
    const desk: Desk = {
      warehouse,
      pages: this.#pages,
      asked: this.#asked,
      listening: this.#listening,
      lists: this.#lists,
      now,
    };
    const before = warehouse.commits;
    const value = warehouse.guard(() => work(desk, args as never, bodies));
    return { value, hasCommitted: warehouse.commits > before };
  }

  /** What may wait until whoever called has his answer. */
  tidyUp(walPages: number): void {
    this.#warehouse?.shortenWal(walPages);
  }

  #open({ path, mayDeferCheck }: OperationArgs<"open">): ReturnType<Lifecycle["open"]> {
    // Every transaction is dated by the call that it serves.
    const clock = { now: () => this.#now / MICROS_PER_MS };
    const said: LogLine[] = [];
    const warehouse = openWarehouse(path, { clock, log: keepLines(said), mayDeferCheck });
    this.#warehouse = warehouse;
    return { isChecked: warehouse.isChecked, said };
  }

  #close(end: OperationArgs<"close">): undefined {
    this.#warehouse?.close(end);
    this.#warehouse = undefined;
  }
}

/** An operation that needs nothing of the desk but the warehouse. */
function onWarehouse<A, R>(work: (warehouse: Warehouse, args: A) => R): (desk: Desk, args: A) => R {
  return ({ warehouse }, args) => work(warehouse, args);
}

function onlyBody(bodies: readonly Body[]): Body {
  const [body] = bodies;
  if (!body || bodies.length > 1) throw new Error("a page has one body");
  return body;
}
