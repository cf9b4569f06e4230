import type { CommitNews } from "../../model/answers/ticks.ts";
import { exitCode, Failure, type SerialisedFailure } from "../../model/failure.ts";
import type { ResponseBody } from "../../model/response-body.ts";
import type { Micros } from "../../model/time.ts";
import type { Upgrade } from "../../warehouse/migrate.ts";
import type { PendingPageSummary, ReadPageOptions, ScannedPage } from "../decode/scanned-page.ts";

/** A call from the main thread. The memory of its bodies is transferred, not copied. */
export interface IngestCall {
  readonly operation: string;
  readonly args: unknown;
  readonly bodies: readonly ResponseBody[];
  /** Every earlier call is done. Otherwise, while storage blocks an earlier one, the thread rejects it with the same failure. */
  readonly isFirst: boolean;
  /** The page to commit, if the scan thread has decoded it. A retried call has it no more: the ingest thread keeps it. */
  readonly scanned?: { readonly pageId: number; readonly page: ScannedPage };
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

/** The reply. A failed call returns its bodies, so that it can be retried. */
export type IngestReply =
  | StoredReply
  | { readonly failure: SerialisedFailure; readonly bodies: readonly ResponseBody[] };

/** What the ingest thread answers. */
export interface IngestCalls {
  run(call: IngestCall): IngestReply;
}

/** What the ingest thread tells while it opens the warehouse. */
export interface IngestNotices {
  upgrade(upgrade: Upgrade): void;
}

export interface ScanCalls {
  scan(call: ScanCall): ScanReply;
}

export interface ScanCall {
  readonly options: ReadPageOptions;
  readonly body: ResponseBody;
}

/** Without a page, the scanner cannot decode the body, and returns it. */
export type ScanReply =
  | { readonly page: ScannedPage; readonly summary: Omit<PendingPageSummary, "pageId"> }
  | { readonly page: undefined; readonly body: ResponseBody };

/** Operations that need neither disk space nor the write lock, and change nothing that a later commit depends on. */
const unorderedOperations: ReadonlySet<string> = new Set([
  ...["readPage", "dropPages", "ping", "close", "checkStorage"],
  ...["recordIntegrityCheck", "listSilentIndices", "hasNoContracts"],
]);

/** Nothing is committed before an ordered call that came earlier. */
export function isOrdered(operation: string): boolean {
  return !unorderedOperations.has(operation);
}

/** The memory of a page, to be transferred instead of copied: its columns share it. */
export function columnMemory({ columns }: ScannedPage): ArrayBuffer[] {
  return [columns.ts.buffer];
}

/** The buffers of the bodies, to be transferred instead of copied. */
export function transferListOf(bodies: readonly ResponseBody[]): ArrayBuffer[] {
  return bodies.map(({ bytes }) => bytes.buffer);
}

/** For calls that were still queued when the thread stopped: none of them was run. */
export function stoppedFailure(): Failure {
  return new Failure("the warehouse is being closed", {
    family: "operator",
    code: "stopped",
    exit: exitCode.ok,
  });
}
