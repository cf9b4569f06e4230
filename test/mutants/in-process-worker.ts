import { EventEmitter } from "node:events";
import type { IngestCall, IngestReply } from "../../src/ingest/thread/messages.ts";
import { OperationRunner } from "../../src/ingest/thread/operations.ts";
import { serialiseFailure } from "../../src/model/failure.ts";

/** Replaces the ingest thread in mutation runs: runs the same calls in the thread that Stryker watches. */
export class Worker extends EventEmitter {
  readonly #runner = new OperationRunner();

  postMessage(call: IngestCall): void {
    setImmediate(() => this.emit("message", this.#run(call)));
  }

  async terminate(): Promise<void> {
    this.emit("exit");
  }

  #run(call: IngestCall): IngestReply {
    try {
      return { id: call.id, ...this.#runner.run(call) };
    } catch (error) {
      return { id: call.id, failure: serialiseFailure(error, "ingest_bug"), bodies: call.bodies };
    }
  }
}
