import { EventEmitter } from "node:events";
import type {
  IngestCall,
  IngestReply,
  ScanCall,
  ScannedPageMessage,
  ScanReply,
} from "../../src/ingest/thread/messages.ts";
import { OperationRunner } from "../../src/ingest/thread/operations.ts";
import { runScan } from "../../src/ingest/thread/serve-scans.ts";
import { serialiseFailure } from "../../src/model/failure.ts";

/** Replaces the ingest and scan threads in mutation runs: runs the same calls in the thread that Stryker watches. */
export class Worker extends EventEmitter {
  readonly #runner = new OperationRunner();

  postMessage(call: IngestCall | ScannedPageMessage | ScanCall): void {
    setImmediate(() => {
      const reply = this.#run(call);
      if (reply) this.emit("message", reply);
    });
  }

  async terminate(): Promise<void> {
    this.emit("exit");
  }

  #run(call: IngestCall | ScannedPageMessage | ScanCall): IngestReply | ScanReply | undefined {
    if ("body" in call) return runScan(call);
    if ("page" in call) {
      this.#runner.addPage(call);
      return undefined;
    }
    try {
      return { id: call.id, ...this.#runner.run(call) };
    } catch (error) {
      return { id: call.id, failure: serialiseFailure(error, "ingest_bug"), bodies: call.bodies };
    }
  }
}
