import type { LiveCommit } from "../../ingest/commit/live.ts";
import type { UnknownField } from "../../model/records.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Cancel } from "../../runtime/clock.ts";
import { type FeedObservation, followFeed } from "../../service/live/feed.ts";
import type { FeedMessage } from "../../service/live/messages.ts";
import type { SubscriptionList } from "../../service/live/subscription-status.ts";
import { type Intake, serviceNow } from "../context/context.ts";
import { isQuiet } from "./check-quiet-market.ts";
import type { LiveStanding } from "./subscription-coverage.ts";
import { LiveBatches } from "./tick-batcher.ts";

export interface LiveFollowing {
  readonly wsUrl: string;
  readonly subscriptions: SubscriptionList;
  readonly standing: LiveStanding;
  readonly refreshSeconds: number;
  readonly random: Random;
  readonly observe: (observation: FeedObservation) => void;
  /** `lagMs`: from receiving the batch's first message to having it on disk. */
  readonly committed: (commit: LiveCommit, lagMs: number) => void;
  readonly heard: (message: FeedMessage) => void;
  /** What is heard live has changed: REST may have to be asked for more, or for less. */
  readonly changed: () => void;
}

/** Stores what the live feed says at once, and keeps track of what it does not say. Runs until the intake's signal. */
export async function followLive(intake: Intake, following: LiveFollowing): Promise<void> {
  const { client, clock, ingest, log, signal } = intake;
  const { standing, refreshSeconds } = following;
  const batches = new LiveBatches(clock, async (messages, since) => {
    const commit = await ingest.call("commitLive", messages, [], signal);
    following.committed(commit, clock.monotonic() - since);
    return commit;
  });
  const unknown = new UnknownMessages(intake);
  const messages = followFeed({
    wsUrl: following.wsUrl,
    tokens: client.tokens,
    subscriptions: following.subscriptions,
    clock,
    random: following.random,
    log,
    observe: following.observe,
    refreshSeconds,
    isQuiet: (subscription, lastTick) => isQuiet(intake, subscription, lastTick),
    signal,
  });
  try {
    for await (const message of messages) {
      if (message.kind === "update") {
        await batches.push(message.texts);
        continue;
      }
      following.heard(message);
      if (message.kind === "unknown") {
        unknown.hear(message);
        continue;
      }
      tell(message, log);
      standing.hear(message, serviceNow(intake));
      if (await tellLedger(intake, standing, batches)) following.changed();
    }
    await batches.flush();
    await unknown.flush();
  } finally {
    // A new feed begins with new subscriptions; what was heard by this one has ended.
    standing.hear({ kind: "disconnected", reason: "stopped", since: serviceNow(intake) }, serviceNow(intake));
  }
}

/** Enters into the ledger what has changed about the live feed, in its place among the ticks. True: something had. */
export async function tellLedger(
  { ingest, signal }: Intake,
  standing: LiveStanding,
  batches?: LiveBatches,
): Promise<boolean> {
  // Two tell of it, and storage that is not well makes calls wait: what is older must not be entered last.
  return standing.inTurn(async () => {
    const news = standing.news();
    if (!news) return false;
    await batches?.flush();
    await ingest.call("commitListening", news, [], signal);
    return true;
  });
}

function tell(message: Exclude<FeedMessage, { kind: "update" | "unknown" }>, log: Intake["log"]): void {
  switch (message.kind) {
    case "parked":
    case "unconfirmed":
      log.warn({ ...message }, "a live subscription is not served: REST is asked instead");
      return;
    case "disconnected":
      log.warn({ reason: message.reason }, "the live feed is disconnected");
      return;
    case "gap":
      log.warn(
        { dropped: message.dropped },
        "live ticks came faster than they could be stored: REST is asked for them",
      );
      return;
    case "error":
      log.warn({ ...message }, "the live feed said something unexpected");
      return;
    default:
      log.debug({ ...message }, "live feed");
  }
}

/** What the feed says by the thousand is stored, and logged, once in so long. */
const GATHER_MS = 10_000;
/** Names that are told apart; a service that makes up new ones would fill the table. */
const MOST_NAMES = 100;
const OTHERS = "(others)";

/** Counts the messages of the live feed that this version does not know, and stores the first of each kind as a sample. */
export class UnknownMessages {
  readonly #intake: Pick<Intake, "clock" | "ingest" | "log" | "signal">;
  readonly #names = new Set<string>();
  #gathered = new Map<string, UnknownField>();
  #cancel: Cancel | undefined;
  #stored: Promise<void> = Promise.resolve();

  constructor(intake: Pick<Intake, "clock" | "ingest" | "log" | "signal">) {
    this.#intake = intake;
  }

  hear({ event, sample, count }: Extract<FeedMessage, { kind: "unknown" }>): void {
    if (this.#names.size < MOST_NAMES) this.#names.add(event);
    const name = this.#names.has(event) ? event : OTHERS;
    const known = this.#gathered.get(name);
    this.#gathered.set(name, { name, sample: known?.sample ?? sample, count: (known?.count ?? 0) + count });
    this.#cancel ??= this.#intake.clock.after(GATHER_MS, () => this.#store());
  }

  /** Stores what is gathered. Never throws: whatever keeps a sample from the disk is met by the ticks as well. */
  async flush(): Promise<void> {
    this.#store();
    await this.#stored;
  }

  #store(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const events = [...this.#gathered.values()];
    this.#gathered = new Map();
    if (events.length === 0) return;
    const { ingest, log, signal } = this.#intake;
    const counts = Object.fromEntries(events.map(({ name, count }) => [name, count]));
    log.warn({ events: counts }, "the live feed said something that this version does not know");
    const storing = ingest.call("commitUnknownEvents", events, [], signal).catch((error: unknown) => {
      log.warn({ error: String(error) }, "a sample of unknown messages was not stored");
    });
    this.#stored = Promise.all([this.#stored, storing]).then(() => {});
  }
}
