import { Failure } from "../../model/failure.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { SyncContext } from "../context/context.ts";
import { classifyError, isInvalidResponse } from "../context/error-policy.ts";
import { retryUntilDone } from "../context/retry.ts";
import type { NotFoundAnswers } from "./not-found-answers.ts";
import type { SliceWalk } from "./slices.ts";
import { type SliceResult, unconfirmedFailure, type WalkOptions, walkSlice } from "./walk-slice.ts";

type WalkOutcome =
  | {
      readonly kind: "filled";
      readonly result: SliceResult;
      /** Set if the service claims not to have many stored rows: their range is open until it has repeated that. */
      readonly unconfirmed: Failure | undefined;
    }
  /** An exploring walk found nothing. */
  | { readonly kind: "empty" }
  /** The index does not exist: the answer is about the whole series. */
  | { readonly kind: "not_found" }
  /** The profile lacks a scope, so the rest of the index family would fail too. */
  | { readonly kind: "forbidden"; readonly error: unknown }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      /** The service was answering, so the failure counts towards the maximum number of tries. */
      readonly countsAsTry: boolean;
    };

interface RunWalkOptions extends WalkOptions {
  /** Decides whether to trust a 404 or 400. Default: a 404 is believed, and changes nothing. */
  readonly notFound?: NotFoundAnswers | undefined;
  /** Repeats a walk that failed. Default: the caller plans again. */
  readonly retries?: Random;
}

/** Walks one slice and says what came of it, for every source of walks. Throws only errors that end the run. */
export async function runWalk(
  context: SyncContext,
  walk: SliceWalk,
  { notFound, retries, ...options }: RunWalkOptions = {},
): Promise<WalkOutcome> {
  const { stats } = context;
  const successesBefore = stats.successCount;
  const work = () => walkSlice(context, walk, options);
  try {
    const result = await (retries ? retryUntilDone(context, retries, work) : work());
    if (result.isUnexplored) return { kind: "empty" };
    notFound?.recordFound(walk.series);
    const unconfirmed = result.unconfirmed > 0 ? unconfirmedFailure(walk, result.unconfirmed) : undefined;
    return { kind: "filled", result, unconfirmed };
  } catch (error) {
    const rejection = error instanceof Failure && error.code === "rejected" ? error : undefined;
    switch (rejection && notFound ? "not_found" : classifyError(error, stats.successCount)) {
      case "stop":
        throw error;
      case "not_found": {
        const range = { from: options.progress?.from ?? walk.range.from, to: walk.range.to };
        const doubt = await notFound?.commit(context, walk, range, rejection);
        if (doubt) return { kind: "failed", error: doubt, countsAsTry: true };
        stats.forStream(walk.series.key.stream).doneMicros += range.to - range.from;
        return { kind: "not_found" };
      }
      case "forbidden":
        return { kind: "forbidden", error };
      default:
        return {
          kind: "failed",
          error,
          countsAsTry: isInvalidResponse(error) || stats.successCount > successesBefore,
        };
    }
  }
}
