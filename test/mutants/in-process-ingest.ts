import {
  type OperationArgs,
  type OperationName,
  type OperationResult,
  OperationRunner,
} from "../../src/ingest/thread/operations.ts";
import type { ResponseBody } from "../../src/model/response-body.ts";
import { MICROS_PER_MS } from "../../src/model/time.ts";
import type { Clock } from "../../src/runtime/clock.ts";

/** Replaces the handle of the ingest thread in mutation runs: the same operations, in this thread. */
export class IngestThread {
  readonly #runner = new OperationRunner();
  readonly #clock: Clock;

  private constructor(clock: Clock) {
    this.#clock = clock;
  }

  static async start({ path, clock }: { path: string; clock: Clock }): Promise<IngestThread> {
    const ingest = new IngestThread(clock);
    await ingest.call("open", { path, mayDeferCheck: false });
    return ingest;
  }

  async call<N extends OperationName>(
    operation: N,
    args: OperationArgs<N>,
    bodies: readonly ResponseBody[] = [],
  ): Promise<OperationResult<N>> {
    const now = Math.floor(this.#clock.now() * MICROS_PER_MS);
    return this.#runner.run({ id: 0, operation, args, bodies, now }).value as OperationResult<N>;
  }

  async close(): Promise<void> {
    await this.call("close", { isSuspect: false });
  }
}
