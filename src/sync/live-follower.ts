import type { LiveCommit } from "../ingest/commit-live.ts";
import { LiveBatches } from "../ingest/live-batches.ts";
import type { Random } from "../runtime/random.ts";
import type { FeedMessage } from "../service/feed-messages.ts";
import { type FeedObservation, followFeed } from "../service/live-feed.ts";
import type { SubscriptionList } from "../service/subscription-list.ts";
import { type Intake, serviceNow } from "./intake.ts";
import { isQuiet } from "./live-quiet.ts";
import type { LiveStanding } from "./live-standing.ts";
import { UnknownMessages } from "./unknown-messages.ts";

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
