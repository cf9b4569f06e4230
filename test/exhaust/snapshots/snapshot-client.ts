import type { ExchangeTick } from "../../../src/model/records.ts";
import type { Micros } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import type { LedgerChange } from "../../../src/rule/apply.ts";
import {
  interruptFeed,
  type LiveFeed,
  type LiveFeedUpdate,
  missTicks,
  receiveTicks,
  updateFeed,
} from "../../../src/rule/live-period.ts";
import { forbidPeriod, noSnapshot, type SnapshotState, takeSnapshot } from "../../../src/rule/snapshot.ts";
import { changeLedger, type Ledger, touchedBy } from "../memory-ledger.ts";
import {
  answerPoll,
  isSelected,
  type ListAnswer,
  type Listed,
  type ListFault,
  nowAt,
  partOf,
  type SnapshotWorld,
  sentAt,
} from "./snapshot-world.ts";

/** What the feed has handed over and no commit has taken yet, in its order. */
type QueuedItem =
  | { readonly kind: "tick"; readonly tick: Listed }
  | {
      readonly kind: "change";
      readonly update: LiveFeedUpdate;
      readonly missed?: TimeRange;
      /** The market whose ticks were found to be missing. */
      readonly silent?: string;
    };

/** A connection of the socket. */
interface Connection {
  /** When its subscription was confirmed, or the last ticks were dropped. */
  readonly since: Micros;
  /** When the last tick was queued. */
  readonly queuedAt: Micros;
  /** The service sends no more ticks of this market. */
  readonly silent?: { readonly market: string; readonly since: Micros };
}

/** One subscription as the program has it. What a kill leaves is `stored`, `ledger`, `snapshots` and `whole`. */
export class SnapshotClient {
  readonly world: SnapshotWorld;
  now: number;
  /** The names of stored records, sorted. */
  stored: readonly string[];
  ledger: Ledger;
  snapshots: SnapshotState;
  /** The length of each list when it was last whole. */
  whole: Readonly<Record<string, number>>;
  feed: LiveFeed;
  connection: Connection | undefined;
  queue: readonly QueuedItem[];

  constructor(world: SnapshotWorld, from?: SnapshotClient) {
    this.world = world;
    this.now = from?.now ?? 0;
    this.stored = from?.stored ?? [];
    this.ledger = from?.ledger ?? [];
    this.snapshots = from?.snapshots ?? noSnapshot;
    this.whole = from?.whole ?? {};
    this.feed = from?.feed ?? this.#newFeed();
    this.connection = from?.connection;
    this.queue = from?.queue ?? [];
  }

  #newFeed(): LiveFeed {
    const { selected, cadence } = this.world;
    return { cadence, markets: selected === undefined ? null : new Set(selected), exchanges: new Map() };
  }

  /** Equal states have equal keys. */
  get key(): string {
    const { now, stored, ledger, snapshots, whole, feed, connection, queue } = this;
    const exchanges = [...feed.exchanges].map(([id, live]) => [
      id,
      live.since,
      live.periods.map((period) => ({ ...period, markets: [...period.markets].sort() })),
    ]);
    return JSON.stringify([now, stored, ledger, snapshots, whole, exchanges, connection, queue]);
  }

  get present(): Micros {
    return nowAt(this.world, this.now);
  }

  /** A slot passes. `isDropped`: the queue is full. */
  advance(isDropped = false): void {
    this.now++;
    const { connection, present } = this;
    if (!connection) return;
    const sent = sentAt(this.world, this.now).filter(({ market }) => market !== connection.silent?.market);
    if (sent.length === 0) return;
    if (isDropped) {
      const missed = { from: connection.queuedAt, to: present };
      this.#enqueue({ kind: "change", update: this.#liveSince(present), missed });
      this.connection = { ...connection, since: present, queuedAt: present };
      return;
    }
    for (const tick of sent) this.#enqueue({ kind: "tick", tick });
    this.connection = { ...connection, queuedAt: present };
  }

  connect(): void {
    const { present } = this;
    this.connection = { since: present, queuedAt: present };
    this.#enqueue({ kind: "change", update: this.#liveSince(present) });
  }

  disconnect(): void {
    this.connection = undefined;
    this.#enqueue({ kind: "change", update: { exchanges: [] } });
  }

  /** The service sends no more ticks of a market. */
  silence(market: string): void {
    const { connection, world } = this;
    if (!connection) return;
    let last = this.now;
    const isSent = () => sentAt(world, last).some((tick) => tick.market === market);
    while (nowAt(world, last) > connection.since && !isSent()) last--;
    // As SubscriptionCoverage does: since its last tick arrived, or else after the period in which the live span began.
    const arrivedAt = nowAt(world, last);
    const since = arrivedAt > connection.since ? arrivedAt : connection.since + world.cadence;
    this.connection = { ...connection, silent: { market, since } };
  }

  /** REST shows that ticks of a silent market are missing. */
  noticeSilence(): void {
    const { connection } = this;
    if (!connection?.silent) return;
    this.connection = undefined;
    const missed = { from: connection.silent.since, to: this.present };
    this.#enqueue({ kind: "change", update: { exchanges: [] }, missed, silent: connection.silent.market });
  }

  /** The market whose ticks are missing, as long as nobody has told the ledger. */
  get silentMarket(): string | undefined {
    const queued = this.queue.find((item) => item.kind === "change" && item.silent !== undefined);
    return this.connection?.silent?.market ?? (queued?.kind === "change" ? queued.silent : undefined);
  }

  #liveSince(since: Micros): LiveFeedUpdate {
    return { exchanges: [{ exchangeId: this.world.subscription, since }] };
  }

  #enqueue(item: QueuedItem): void {
    this.queue = [...this.queue, item];
  }

  /** Nothing of the memory survives. */
  restart(): void {
    this.feed = this.#newFeed();
    this.connection = undefined;
    this.queue = [];
  }

  /** The ticks at the head of the queue, which a commit takes together. */
  get batch(): readonly Listed[] {
    const end = this.queue.findIndex(({ kind }) => kind === "change");
    return this.queue
      .slice(0, end < 0 ? this.queue.length : end)
      .flatMap((item) => (item.kind === "tick" ? [item.tick] : []));
  }

  /** Commits the whole queue, in its order. */
  commitAll(): void {
    while (this.queue.length > 0) this.commitHead(this.batch);
  }

  /** Commits a batch of the queue's first ticks, or the change at its head. */
  commitHead(batch: readonly Listed[]): void {
    const [head] = this.queue;
    if (head?.kind === "change") {
      this.feed = updateFeed(this.feed, head.update);
      if (head.missed) this.#apply(missTicks(head.missed, this.world.cadence));
      this.queue = this.queue.slice(1);
      return;
    }
    this.commitTicks(batch);
    this.queue = this.queue.slice(batch.length);
  }

  commitTicks(batch: readonly Listed[]): void {
    const ticks = batch.map(({ market, ts }) => ({ ts, exchangeId: "x", marketId: market }) as ExchangeTick);
    const { feed, changes } = receiveTicks(this.feed, ticks, this.present, () => this.#stored());
    this.feed = feed;
    this.#store(batch);
    for (const each of changes.values()) this.#apply(each);
  }

  /** A batch of one tick cannot be committed at all, and the follower starts again. */
  loseBatch(): void {
    this.queue = this.queue.slice(1);
    this.feed = interruptFeed(this.feed);
    if (this.connection) this.disconnect();
  }

  /** Stores what a poll shows; `isKilled`: and no more. */
  poll(how: "honest" | ListFault, isKilled = false): void {
    if (how === "forbidden") {
      this.#apply(forbidPeriod(this.present, this.world.cadence));
      return;
    }
    const answer = answerPoll(this.world, this.now, how, this.whole);
    this.#store(answer.records);
    if (isKilled) return;
    for (let times = how === "cut at once again" ? 2 : 1; times > 0; times--) this.#take(answer);
    if (how !== "honest") return;
    const lengths = answer.snapshot.parts.map(({ part, listed }) => [part, listed] as const);
    this.whole = Object.fromEntries(lengths);
  }

  #take({ snapshot }: ListAnswer): void {
    const taken = takeSnapshot(snapshot, this.snapshots, this.#stored(), this.present);
    this.snapshots = taken.state;
    this.#apply(taken.changes);
  }

  #stored() {
    return {
      settledRanges: (range: TimeRange) => touchedBy(this.ledger, range),
      hadRows: this.hadRows,
    };
  }

  get isPolled(): boolean {
    return this.snapshots !== noSnapshot;
  }

  get hadRows(): boolean {
    return this.ledger.some(({ proof }) => proof === "rows");
  }

  #store(records: readonly Listed[]): void {
    const names = records.filter(({ market }) => isSelected(this.world, market)).map(({ name }) => name);
    if (names.some((name) => !this.stored.includes(name)))
      this.stored = [...new Set([...this.stored, ...names])].sort();
  }

  #apply(changes: readonly LedgerChange[]): void {
    for (const change of changes) {
      if (change.kind === "withdraw") throw new Error("snapshots withdraw nothing");
      this.ledger = changeLedger(this.ledger, change);
    }
  }
}

/** Whether the lists of a world have been whole once: a shorter one can be told from it. */
export function hasWhole({ whole, world }: SnapshotClient, longerThan: number): boolean {
  return (whole[partOf(world, "a")] ?? 0) > longerThan;
}
