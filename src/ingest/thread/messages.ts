import type { MessagePort } from "node:worker_threads";
import type { CommitNews } from "../../model/answers/ticks.ts";
import { exitCode, Failure, type SerialisedFailure } from "../../model/failure.ts";
import type { ResponseBody } from "../../model/response-body.ts";
import type { Micros } from "../../model/time.ts";
import type { Upgrade } from "../../warehouse/migrate.ts";
import type { WalkPage } from "../commit/walk-page.ts";
import type { ReadPageOptions, ScanSummary, SentPage } from "../decode/read-page.ts";

export interface IngestWorkerData {
  /** Once it is set, the ingest thread rejects queued calls without running them. */
  readonly stopFlag: Int32Array;
  /** Where the scan thread sends pages. */
  readonly pages: MessagePort;
}

export interface IngestCall {
  readonly operation: string;
  readonly args: unknown;
  /** Nothing is committed before an ordered call that came earlier. */
  readonly isOrdered: boolean;
  /** Every earlier call is done. Otherwise, while storage blocks an earlier one, the thread rejects it with the same failure. */
  readonly isFirst: boolean;
  /** The client's secrets, none of which may be stored; absent if they have not changed. */
  readonly secrets?: readonly string[];
  /** The time by the service's clock and by this machine's; the ingest thread has none of its own. */
  readonly now: Micros;
  readonly machineNow: Micros;
}

export interface StoredReply {
  readonly value: unknown;
  /** A transaction was committed: the disk has space and the write lock is free. */
  readonly hasCommitted: boolean;
  /** What was committed since the last reply. */
  readonly news: readonly CommitNews[];
}

export type IngestReply = StoredReply | { readonly failure: SerialisedFailure };

/** What the ingest thread answers. */
export interface IngestCalls {
  run(call: IngestCall): IngestReply;
}

/** What the ingest thread reports while it opens the warehouse. */
export interface IngestNotices {
  upgrade(upgrade: Upgrade): void;
}

/** What the scan thread answers. */
export interface ScanCalls {
  scan(call: ScanCall): ScanSummary;
}

/** Names a page: by its number among those of its reader. */
interface PageName {
  readonly reader: number;
  readonly number: number;
}

/** A body, the memory of which is transferred, not copied. */
interface ScanCall extends PageName, Pick<IngestCall, "secrets"> {
  readonly options: ReadPageOptions;
  readonly body: ResponseBody;
}

/** From the scan thread to the ingest thread. */
export interface PageMessage extends PageName {
  readonly page: SentPage;
}

/** What a walk says of each page. */
export type WalkPageCall = WalkPage & PageName;

/** For calls that were still queued when the thread stopped: none of them was run. */
export function stoppedFailure(): Failure {
  return new Failure("the warehouse is being closed", {
    family: "operator",
    code: "stopped",
    exit: exitCode.ok,
  });
}
