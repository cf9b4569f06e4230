import type { Doubt, ListSeen, SnapshotCommit, SubscriptionSeen } from "../../ingest/commit/snapshot.ts";
import { Failure } from "../../model/failure.ts";
import type { Micros } from "../../model/time.ts";
import type { Intake } from "../context/context.ts";

const doubts: Readonly<Record<Doubt, string>> = {
  unreadable: "most records of the list could not be read",
  shrunken: "the list has become less than half of what it was",
  empty: "the list has nothing in it",
};

/** Adds up what the pages of a list said. */
export class PagesSeen {
  listed = 0;
  rejected = 0;
  readonly moments: Micros[] = [];
  readonly keptMoments: Micros[] = [];

  add({ listed, rejected, newest, newestKept }: SnapshotCommit): void {
    this.listed += listed;
    this.rejected += rejected;
    if (newest !== undefined) this.moments.push(newest);
    if (newestKept !== undefined) this.keptMoments.push(newestKept);
  }

  list(part = ""): ListSeen {
    const { listed, rejected, moments, keptMoments } = this;
    return { part, listed, rejected, moments, keptMoments };
  }
}

/** Enters that a subscription was observed. Throws where what came cannot be all that the service has: nothing is claimed then. */
export async function observeLists({ ingest, signal }: Intake, seen: SubscriptionSeen): Promise<void> {
  const doubt = await ingest.call("commitObservation", seen, [], signal);
  if (doubt === undefined) return;
  throw new Failure(`the answer to ${seen.stream.replace("_", " ")} is not believed: ${doubts[doubt]}`, {
    family: "retry",
    code: "doubtful_list",
    remedy: "it is asked for again and claimed once it is whole; what could not be read is in rejects",
  });
}
