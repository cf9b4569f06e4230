import type { ShareChange } from "../../model/status/share-status.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ComparisonResult } from "../verify.ts";
import type { ShareReport, ShareThreadSettings } from "./share-messages.ts";

/** How often the stores are compared: a comparison without a difference takes some milliseconds. */
export const PASS_INTERVAL_MS = 2_000;
/** A comparison of everything may take hours: what is new goes first. */
export const MAX_COMPARISON_MS = 2_000;

export interface ShareLoopOptions extends ShareThreadSettings {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  readonly askPassword: () => Promise<string | undefined>;
  readonly report: (report: ShareReport) => void;
  /** Lets the sync follow a share; resolves when it does, or after a while. */
  readonly follow: (change: ShareChange) => Promise<void>;
}

/** Compares for a while. Returns whether there is more to compare. */
export async function compareFor(
  comparison: AsyncGenerator<ComparisonResult>,
  ms: number,
  { clock, signal }: ShareLoopOptions,
): Promise<boolean> {
  const until = clock.monotonic() + ms;
  while (clock.monotonic() < until && !signal.aborted) if ((await comparison.next()).done) return false;
  return true;
}
