import { type Failure, serialiseFailure } from "../../model/failure.ts";
import { runAfterPendingMessages } from "../../runtime/clock.ts";
import { type Answer, Channel, type ThreadPort } from "../../runtime/thread.ts";
import { isBlocking } from "../../warehouse/sqlite/sqlite-errors.ts";
import {
  type IngestCall,
  type IngestCalls,
  type IngestNotices,
  type IngestReply,
  type IngestWorkerData,
  stoppedFailure,
} from "./messages.ts";
import { OperationRunner } from "./operations.ts";

/** A shorter WAL is not worth the two fsyncs that a checkpoint costs. */
const LONG_WAL_PAGES = 8_000;
/** A page leaves one or two stale bars: computing them in a transaction of their own costs as much as the page. */
const COMMITS_PER_BAR_STEP = 50;

interface WaitingCall extends IngestCall {
  readonly answer: Answer<IngestReply>;
}

/**
 * Runs the calls that arrive at the port, synchronously, so that they cannot overlap. Pages that wait together are committed
 * together. Checkpoints the WAL after the reply. Once `stopFlag` is set, it rejects queued calls without running them.
 */
export function serveCalls({ stopFlag, pages }: IngestWorkerData, port?: ThreadPort): void {
  const host = new Channel<IngestNotices, IngestCalls>({
    port,
    bugCode: "ingest_bug",
    handlers: { run: receive },
  });
  const runner: OperationRunner = new OperationRunner(pages, {
    log: host.log,
    onUpgrade: (upgrade) => host.send("upgrade", upgrade),
  });
  let waitingPages: WaitingCall[] = [];
  // The first commit is the opening: it finds what the last process left.
  let commitsUntilBars = 1;
  let isComputingBars = false;
  /** Why the last ordered call could not be stored. */
  let blockedBy: Failure | undefined;

  function receive(call: IngestCall, answer: Answer<IngestReply>): void {
    if (call.secrets) runner.redactor.setSecrets(call.secrets);
    if (call.operation === "commitWalkPage") {
      waitingPages.push({ ...call, answer });
      if (waitingPages.length === 1) runAfterPendingMessages(commitWaitingPages);
      return;
    }
    // All operations take effect in order.
    commitWaitingPages();
    runAndReply({ ...call, answer });
  }

  function commitWaitingPages(): void {
    const calls = waitingPages;
    waitingPages = [];
    if (calls.length > 1 && !isStopping() && !calls.some(isHeldBack) && commitTogether(calls)) return;
    for (const call of calls) runAndReply(call);
  }

  /** Whether an earlier call must be stored first. */
  function isHeldBack({ isOrdered, isFirst }: IngestCall): boolean {
    if (!isOrdered) return false;
    if (isFirst) blockedBy = undefined;
    return blockedBy !== undefined;
  }

  /** False if one of the pages cannot be committed: each must be committed on its own, so that only that one fails. */
  function commitTogether(calls: readonly WaitingCall[]): boolean {
    try {
      const results = runner.runPageCommits(calls);
      if (!results) return false;
      for (const [i, { answer }] of calls.entries())
        answer({ value: results[i], hasCommitted: true, news: runner.takeNews() });
    } catch (error) {
      for (const call of calls) replyFailure(call, error);
      return true;
    }
    shortenWal();
    countCommits(calls.length);
    return true;
  }

  function runAndReply(call: WaitingCall): void {
    let reply: ReturnType<OperationRunner["run"]>;
    try {
      if (isStopping() && call.operation !== "close") throw stoppedFailure();
      if (isHeldBack(call)) throw blockedBy;
      reply = runner.run(call);
      call.answer(reply);
    } catch (error) {
      replyFailure(call, error);
      return;
    }
    if (!reply.hasCommitted) return;
    // Live batches come in bursts: commit the whole burst before the checkpoint.
    if (call.operation === "commitLiveMessages") runAfterPendingMessages(shortenWal);
    else shortenWal();
    countCommits(1);
  }

  function replyFailure({ isOrdered, answer }: WaitingCall, error: unknown): void {
    if (isOrdered && isBlocking(error)) blockedBy = error;
    answer({ failure: serialiseFailure(error, "ingest_bug") });
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
    shortenWal();
    runAfterPendingMessages(computeStaleBars);
  }

  const shortenWal = () => runner.shortenWal(LONG_WAL_PAGES);
  const isStopping = () => Atomics.load(stopFlag, 0) === 1;
}
