import type { MessagePort } from "node:worker_threads";
import { serialiseFailure } from "../../model/failure.ts";
import { runAfterPendingMessages } from "../../runtime/loop.ts";
import {
  type IngestCall,
  type IngestReply,
  type ScannedPageMessage,
  stoppedFailure,
  transferListOf,
  type UpgradeNotice,
} from "./messages.ts";
import { OperationRunner } from "./operations.ts";

/** A shorter WAL is not worth the two fsyncs that a checkpoint costs. */
const LONG_WAL_PAGES = 2_000;
/** Bounds how long one transaction delays the calls after it. */
const MAX_PAGES_PER_COMMIT = 16;
/** A page leaves one or two stale bars: computing them in a transaction of their own costs as much as the page. */
const COMMITS_PER_BAR_STEP = 50;

/**
 * Runs the calls that arrive at the port, synchronously, so that they cannot overlap. Pages that wait together are committed
 * together. Checkpoints the WAL after the reply. Once `stopFlag` is set, it rejects queued calls without running them.
 */
export function serveCalls(port: MessagePort, stopFlag: Int32Array): void {
  const runner = new OperationRunner((upgrade) => port.postMessage({ upgrade } satisfies UpgradeNotice));
  let waitingPages: IngestCall[] = [];
  // The first commit is the opening: it finds what the last process left.
  let commitsUntilBars = 1;
  let isComputingBars = false;

  port.on("message", (call: IngestCall | ScannedPageMessage) => {
    if ("page" in call) return runner.addPage(call);
    if (call.secrets) runner.setSecrets(call.secrets);
    if (call.operation === "commitWalkPage") {
      waitingPages.push(call);
      if (waitingPages.length === 1) runAfterPendingMessages(commitWaitingPages);
      if (waitingPages.length === MAX_PAGES_PER_COMMIT) commitWaitingPages();
      return;
    }
    // All operations take effect in order; reading a page changes nothing.
    if (call.operation !== "readPage") commitWaitingPages();
    runAndReply(call);
  });

  function commitWaitingPages(): void {
    const calls = waitingPages;
    waitingPages = [];
    if (calls.length > 1 && !isStopping() && commitTogether(calls)) return;
    for (const call of calls) runAndReply(call);
  }

  /** False if one of the pages cannot be committed: each must be committed on its own, so that only that one fails. */
  function commitTogether(calls: readonly IngestCall[]): boolean {
    try {
      const results = runner.runPageCommits(calls);
      if (!results) return false;
      for (const [i, { id }] of calls.entries())
        port.postMessage({ id, value: results[i], hasCommitted: true } satisfies IngestReply);
    } catch (error) {
      for (const call of calls) replyFailure(call, error);
      return true;
    }
    runner.shortenWal(LONG_WAL_PAGES);
    countCommits(calls.length);
    return true;
  }

  function runAndReply(call: IngestCall): void {
    let reply: IngestReply;
    try {
      if (isStopping() && call.operation !== "close") throw stoppedFailure();
      reply = { id: call.id, ...runner.run(call) };
      port.postMessage(reply);
    } catch (error) {
      replyFailure(call, error);
      return;
    }
    if (!reply.hasCommitted) return;
    shortenWalAfter(call);
    countCommits(1);
  }

  function replyFailure({ id, bodies }: IngestCall, error: unknown): void {
    const reply: IngestReply = { id, failure: serialiseFailure(error, "ingest_bug"), bodies };
    port.postMessage(reply, transferListOf(bodies));
  }

  function countCommits(count: number): void {
    commitsUntilBars -= count;
    if (isComputingBars || commitsUntilBars > 0) return;
    commitsUntilBars = COMMITS_PER_BAR_STEP;
    runAfterPendingMessages(computeStaleBars);
  }

  /** Between two calls, until none is left. The calls that have arrived meanwhile come first. */
  function computeStaleBars(): void {
    isComputingBars = !isStopping() && runner.computeStaleBars();
    if (!isComputingBars) return;
    runner.shortenWal(LONG_WAL_PAGES);
    runAfterPendingMessages(computeStaleBars);
  }

  /** Live batches come in bursts: commit the whole burst before the checkpoint. */
  function shortenWalAfter({ operation }: IngestCall): void {
    const shortenWal = () => runner.shortenWal(LONG_WAL_PAGES);
    if (operation === "commitLiveMessages") runAfterPendingMessages(shortenWal);
    else shortenWal();
  }

  const isStopping = () => Atomics.load(stopFlag, 0) === 1;
}
