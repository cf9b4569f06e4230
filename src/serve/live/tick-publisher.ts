import type { Audience, Feed, TickNews } from "../../api-server/source.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { type Cancel, runAfterPendingMessages } from "../../runtime/clock.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import {
  canContinue,
  type JournalPosition,
  readChanges,
  readJournalPosition,
} from "../../warehouse/tables/journal.ts";
import { MAX_AHEAD_MICROS } from "../../warehouse/views/data-views.ts";
import type { ServeContext, ServedWarehouse } from "../served-warehouse.ts";
import { findNewestTick, findTickSources, type Gap, gapText, type TickSource } from "./tick-sources.ts";

interface TickPublisherOptions extends ServeContext {
  readonly audience: Audience;
}

/** How often to look for a commit; reading its number takes microseconds. */
const POLL_INTERVAL_MS = 50;
/** Older rows are filled history, which is not sent. */
const MAX_NEWS_AGE_MICROS = 300 * MICROS_PER_SECOND;

interface FollowedSource {
  readonly source: TickSource;
  readonly sent: SentTicks;
  /** Ranges that may have ticks to send. */
  readonly changed: TimeRange[];
}

const ALWAYS: TimeRange = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/**
 * Sends ticks once they are committed. The writer may be another process, so it watches the number of the last commit
 * and then reads what is new of the followed series that the journal names: one index seek each.
 */
export class TickPublisher implements Feed {
  readonly #options: TickPublisherOptions;
  readonly #followed = new Map<string, FollowedSource>();
  #cancelPoll: Cancel | undefined;
  /** The topics whose sources are followed. */
  #topics: ReadonlySet<string> = new Set();
  #isReadScheduled = false;
  #version = "";
  /** Up to where the journal was read. */
  #position: JournalPosition | undefined;
  /** The largest key in the journal so far: a new source has a larger one. */
  #largestKeys = { index_ticks: 0, exchange_ticks: 0 };
  #mayHaveNewSource = false;
  #hasFailed = false;

  constructor(options: TickPublisherOptions) {
    this.#options = options;
  }

  /**
   * Call it after each subscription. Only later ticks are sent. A client may subscribe to thousands of indices one by one:
   * what arrives together is searched once, and what another client has subscribed to already is not.
   */
  subscriptionsChanged(topics: readonly string[]): void {
    this.#schedule();
    if (this.#isReadScheduled || topics.every((topic) => this.#topics.has(topic))) return;
    this.#isReadScheduled = true;
    runAfterPendingMessages(() => {
      this.#isReadScheduled = false;
      this.#guard(() => this.#readSources(true));
    });
  }

  stop(): void {
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
    this.#forget();
  }

  /** The next client does not get what is committed while nobody is subscribed. */
  #forget(): void {
    this.#topics = new Set();
    this.#followed.clear();
    this.#position = undefined;
    this.#version = "";
  }

  /** Without subscriptions there is nothing to poll for. */
  #schedule(): void {
    if (this.#cancelPoll !== undefined) return;
    if (!this.#options.audience.hasSubscribers) {
      this.#forget();
      return;
    }
    this.#cancelPoll = this.#options.clock.after(POLL_INTERVAL_MS, () => {
      this.#cancelPoll = undefined;
      this.#guard(() => this.#poll());
      this.#schedule();
    });
  }

  /** The warehouse may be replaced or damaged: the next poll tries again. */
  #guard(work: () => void): void {
    try {
      work();
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#options.log.error({ error: String(error) }, "served ticks cannot be read");
      this.#hasFailed = true;
    }
  }

  #poll(): void {
    const { warehouse } = this.#options;
    const version = warehouse.dataVersion;
    if (version !== this.#version) this.#readJournal(warehouse);
    this.#version = version;
    if (this.#mayHaveNewSource) this.#readSources(false);
    const changed = [...this.#followed.values()].filter((followed) => followed.changed.length > 0);
    if (changed.length === 0) return;
    const news = this.#readNews(changed);
    if (news.length > 0) this.#options.audience.deliver(news);
  }

  #readJournal({ connection }: ServedWarehouse): void {
    const position = readJournalPosition(connection);
    const before = this.#position;
    this.#position = position;
    if (before === undefined || !canContinue(position, before)) {
      for (const { changed } of this.#followed.values()) changed.push(ALWAYS);
      this.#largestKeys = { index_ticks: 0, exchange_ticks: 0 };
      this.#mayHaveNewSource = true;
      return;
    }
    for (const change of readChanges(connection, { after: before.seq, until: position.seq })) {
      const { stream, kind, key, from, to } = change;
      if (kind !== "rows" || (stream !== "index_ticks" && stream !== "exchange_ticks")) continue;
      this.#mayHaveNewSource ||= key > this.#largestKeys[stream];
      this.#largestKeys[stream] = Math.max(this.#largestKeys[stream], key);
      this.#followed.get(`${stream} ${key}`)?.changed.push({ from, to });
    }
  }

  /** Existing ticks are sent of a source that has just appeared, not of one that a client has just subscribed to. */
  #readSources(isSubscription: boolean): void {
    const { warehouse, audience } = this.#options;
    // What was committed before a subscription is not announced to it.
    if (isSubscription) this.#readJournal(warehouse);
    this.#mayHaveNewSource = false;
    this.#topics = audience.topics;
    const until = warehouse.now + MAX_AHEAD_MICROS;
    const found = new Set<string>();
    warehouse.snapshot((connection) => {
      for (const source of findTickSources(connection, (topic) => this.#topics.has(topic))) {
        const name = `${source.stream} ${source.key}`;
        found.add(name);
        if (this.#followed.has(name)) continue;
        const newest = isSubscription ? findNewestTick(connection, source, until) : -1;
        const sent = new SentTicks(Math.max(newest, warehouse.now - MAX_NEWS_AGE_MICROS - 1));
        this.#followed.set(name, { source, sent, changed: isSubscription ? [] : [ALWAYS] });
      }
    });
    for (const name of this.#followed.keys()) if (!found.has(name)) this.#followed.delete(name);
  }

  #readNews(changed: readonly FollowedSource[]): TickNews[] {
    const { warehouse } = this.#options;
    const { now } = warehouse;
    const oldest = now - MAX_NEWS_AGE_MICROS;
    return warehouse.snapshot((connection) =>
      changed.flatMap((followed) => {
        const { source, sent } = followed;
        const gaps = findLate(connection, followed, Math.max(sent.newest + 1, oldest));
        const ticks = source.read(connection, Math.max(sent.newest + 1, oldest), now + MAX_AHEAD_MICROS);
        sent.add(ticks.map(({ ts }) => ts));
        const texts = [...gaps.map((gap) => gapText(source, gap)), ...ticks.map(({ text }) => text)];
        return texts.length > 0 ? [{ topics: source.topics, texts }] : [];
      }),
    );
  }
}

/** Where ticks came after later ones were sent, or too late to be sent: a client reads them by REST. */
function findLate(connection: Connection, { source, sent, changed }: FollowedSource, until: Micros): Gap[] {
  const readTimestamps = ({ from, to }: TimeRange) => source.read(connection, from, to).map(({ ts }) => ts);
  return changed
    .splice(0)
    .map((range) => sent.takeLate(range, until, readTimestamps))
    .filter((range) => range !== undefined)
    .map((range) => ({ ...range, state: "filled", reason: "stored late" }));
}

/** Timestamps are remembered for this long. */
const MEMORY_MICROS = 3600 * MICROS_PER_SECOND;

/** The ticks of one source that were sent. Ticks are sent in the order of time: a late one is only announced. */
class SentTicks {
  /** Ticks that existed at the subscription are not sent. */
  readonly #existing: Micros;
  /** Every known tick above this is in the set. */
  #rememberedFrom: Micros;
  #known = new Set<Micros>();
  newest: Micros;

  constructor(newest: Micros) {
    this.#existing = newest;
    this.#rememberedFrom = newest;
    this.newest = newest;
  }

  /** Remembers ticks in the order of time. */
  add(timestamps: readonly Micros[]): void {
    for (const ts of timestamps) this.#known.add(ts);
    this.newest = Math.max(this.newest, timestamps.at(-1) ?? this.newest);
    const from = this.newest - MEMORY_MICROS;
    if (from - this.#rememberedFrom < MEMORY_MICROS) return;
    this.#known = new Set([...this.#known].filter((ts) => ts > from));
    this.#rememberedFrom = from;
  }

  /** The part of a changed range that has ticks which are not sent: their time, before `until`, is over; undefined: none. */
  takeLate(
    { from, to }: TimeRange,
    until: Micros,
    readTimestamps: (range: TimeRange) => readonly Micros[],
  ): TimeRange | undefined {
    const start = Math.max(from, this.#existing + 1);
    const end = Math.min(to, until);
    if (start >= end) return undefined;
    const rememberedFrom = this.#rememberedFrom;
    const unsent = readTimestamps({ from: Math.max(start, rememberedFrom + 1), to: end }).filter(
      (ts) => !this.#known.has(ts),
    );
    this.add(unsent);
    const first = start <= rememberedFrom ? start : unsent[0];
    const last = unsent.at(-1) ?? Math.min(end - 1, rememberedFrom);
    return first === undefined ? undefined : { from: first, to: last + 1 };
  }
}
