import type { MessagePort } from "node:worker_threads";
import { serialiseFailure } from "../../model/failure.ts";
import { runAfterPendingMessages } from "../../runtime/loop.ts";
import { type IngestCall, type IngestReply, stoppedFailure, transferListOf } from "./messages.ts";
import { OperationRunner } from "./operations.ts";

/** A shorter WAL is not worth the two fsyncs that a checkpoint costs. */
const LONG_WAL_PAGES = 2_000;

/** A page leaves one or two stale bars: computing them in a transaction of their own costs as much as the page. */
const COMMITS_PER_BAR_STEP = 50;

/**
 * Runs the calls that arrive at the port, synchronously, so that they cannot overlap. Checkpoints the WAL after the reply.
 * Once `stopFlag` is set, it rejects queued calls without running them.
 */
export function serveCalls(port: MessagePort, stopFlag: Int32Array): void {
  const runner = new OperationRunner();
  let commitCount = 0;
  let isComputing = false;

  /** Between two calls, until none is left. The calls that have arrived meanwhile come first. */
  function computeStaleBars(): void {
    isComputing = Atomics.load(stopFlag, 0) === 0 && runner.computeStaleBars();
    if (!isComputing) return;
    runner.shortenWal(LONG_WAL_PAGES);
    runAfterPendingMessages(computeStaleBars);
  }

  /** Live batches come in bursts: commit the whole burst before the checkpoint. */
  function shortenWalAfter({ operation }: IngestCall): void {
    const shortenWal = () => runner.shortenWal(LONG_WAL_PAGES);
    if (operation === "commitLiveMessages") runAfterPendingMessages(shortenWal);
    else shortenWal();
  }

  port.on("message", (call: IngestCall) => {
    let reply: IngestReply;
    try {
      if (Atomics.load(stopFlag, 0) === 1 && call.operation !== "close") throw stoppedFailure();
      reply = { id: call.id, ...runner.run(call) };
      port.postMessage(reply);
    } catch (error) {
      reply = { id: call.id, failure: serialiseFailure(error, "ingest_bug"), bodies: call.bodies };
      port.postMessage(reply, transferListOf(call.bodies));
      return;
    }
    if (!reply.hasCommitted) return;
    shortenWalAfter(call);
    // The first commit is the opening: it finds what the last process left.
    const isDue = commitCount++ % COMMITS_PER_BAR_STEP === 0;
    if (isDue && !isComputing) runAfterPendingMessages(computeStaleBars);
  });
}
