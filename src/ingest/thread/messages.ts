import type { SentFailure } from "../../model/failure.ts";
import { exitCode, Failure } from "../../model/failure.ts";
import type { Body } from "../../model/response-body.ts";
import type { Micros } from "../../model/time.ts";

/** What the main thread sends: which operation, its arguments, and the bodies, whose memory changes hands. */
export interface Call {
  readonly id: number;
  readonly operation: string;
  readonly args: unknown;
  readonly bodies: readonly Body[];
  /** The moment, by the main thread's clock: the ingest thread has none of its own. */
  readonly now: Micros;
}

/** What comes back. A failed call brings its bodies home, so that it can be made again. */
export type Reply =
  | {
      readonly id: number;
      readonly value: unknown;
      /** Something was committed: there is room on the disk, and nobody else holds the write lock. */
      readonly hasCommitted: boolean;
    }
  | { readonly id: number; readonly failure: SentFailure; readonly bodies: readonly Body[] };

/** The memory of the bodies, to be handed over instead of copied. */
export function memoryOf(bodies: readonly Body[]): ArrayBuffer[] {
  return bodies.map(({ bytes }) => bytes.buffer);
}

/** Work that was queued when the thread was told to stop: nothing of it was done. */
export function closing(): Failure {
  return new Failure("the warehouse is being closed", {
    family: "operator",
    code: "stopped",
    exit: exitCode.ok,
  });
}
