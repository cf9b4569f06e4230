import type { LiveCommit } from "../ingest/commit-live.ts";
import { LiveBatches } from "../ingest/live-batches.ts";
import { decodeBody } from "../model/body.ts";
import { formatInstant, type Micros, parseInstant } from "../model/instant.ts";
import type { Random } from "../runtime/random.ts";
import { priority } from "../service/endpoints.ts";
import type { FeedMessage, Subscription } from "../service/feed-messages.ts";
import { type FeedObservation, followFeed } from "../service/live-feed.ts";
import { type Intake, serviceNow } from "./intake.ts";

export interface LiveFollowing {
  readonly wsUrl: string;
  readonly subscriptions: readonly Subscription[];
  readonly refreshSeconds: number;
  readonly random: Random;
  readonly observe: (observation: FeedObservation) => void;
  /** `lagMs`: from receiving the batch's first message to having it on disk. */
  readonly committed: (commit: LiveCommit, lagMs: number) => void;
  readonly heard?: (message: FeedMessage) => void;
  /** Something may have been missed, or cannot be heard live: REST is to be asked. */
  readonly missed: (why: string) => void;
  /** Whether ticks flow for everything that is subscribed. */
  readonly flowing: (isFlowing: boolean) => void;
}

/** Stores what the live feed says at once, and says when REST has to be asked instead. Runs until the intake's signal. */
export async function followLive(intake: Intake, following: LiveFollowing): Promise<void> {
  const { client, clock, ingest, log, signal } = intake;
  const batches = new LiveBatches(clock, async (messages, since) => {
    const commit = await ingest.call("commitLive", messages, [], signal);
    following.committed(commit, clock.monotonic() - since);
    return commit;
  });
  const silent = new Set<string>();
  const messages = followFeed({
    wsUrl: following.wsUrl,
    tokens: client.tokens,
    subscriptions: following.subscriptions,
    clock,
    random: following.random,
    log,
    observe: following.observe,
    refreshSeconds: following.refreshSeconds,
    isQuiet: (subscription, lastTick) => isQuiet(intake, subscription, lastTick),
    signal,
  });
  for await (const message of messages) {
    if (message.kind === "update") await batches.push(message.texts);
    else {
      following.heard?.(message);
      note(message, following, silent, log);
    }
  }
  await batches.flush();
}

function note(
  message: Exclude<FeedMessage, { kind: "update" }>,
  following: LiveFollowing,
  silent: Set<string>,
  log: Intake["log"],
): void {
  const keyOf = (subscription: Subscription) => JSON.stringify(subscription);
  switch (message.kind) {
    case "subscribed":
      silent.delete(keyOf(message.subscription));
      following.flowing(silent.size === 0);
      // Subscribe first, then fill up to what has been heard: nothing falls between the two.
      following.missed("subscribed");
      return;
    case "parked":
    case "unconfirmed":
      silent.add(keyOf(message.subscription));
      following.flowing(false);
      log.warn({ ...message }, "a live subscription is not served: REST is asked instead");
      return;
    case "disconnected":
      following.flowing(false);
      log.warn({ reason: message.reason }, "the live feed is disconnected");
      return;
    case "gap":
      following.missed("overflow");
      log.warn(
        { dropped: message.dropped },
        "live ticks came faster than they could be stored: REST is asked for them",
      );
      return;
    case "connected":
    case "swapped":
    case "retrying":
      log.debug({ ...message }, "live feed");
      return;
    case "error":
    case "unknown":
      log.warn({ ...message }, "the live feed said something unexpected");
  }
}

/** True when REST has no tick that is newer than the last one heard: the market is quiet, not the socket dead. */
async function isQuiet(
  intake: Intake,
  subscription: Subscription,
  lastTick: Micros | undefined,
): Promise<boolean> {
  if (subscription.source !== "index") return true;
  const { indexId, indexType } = subscription;
  const query = { indexId, indexType, timestamp: formatInstant(serviceNow(intake)), size: 1 };
  const ask = {
    endpoint: "/index-ticker",
    query,
    priority: priority.head,
    signal: intake.signal,
    attempts: 2,
  };
  const newest = await intake.client.request(ask, async (body) => {
    const { content } = JSON.parse(Buffer.from(decodeBody(body)).toString()) as {
      content?: { timestamp?: unknown }[];
    };
    const timestamp = content?.[0]?.timestamp;
    return typeof timestamp === "string" ? parseInstant(timestamp) : undefined;
  });
  return newest === undefined || (lastTick !== undefined && newest <= lastTick);
}
