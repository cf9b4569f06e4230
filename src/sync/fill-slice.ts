import type { Denials } from "./denials.ts";
import type { Intake } from "./intake.ts";
import { isAnswered, judge } from "./trouble.ts";
import { type SliceWalk, walkSlice } from "./walk-slice.ts";

export type SliceOutcome =
  | {
      readonly kind: "filled";
      /** What was found refutes what the service said of another range, which is open again. */
      readonly reopened: boolean;
    }
  /** The profile lacks a scope: the rest of the family need not be asked. */
  | { readonly kind: "forbidden"; readonly error: unknown }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      /** The service answered, and it failed all the same. */
      readonly isStuck: boolean;
    };

/**
 * Fills one slice. `servedAgain` is called when the service has records of a line that it once answered with 404;
 * `denials` decide whether a 404 is believed. Throws only where nothing can go on.
 */
export async function fillSlice(
  intake: Intake,
  walk: SliceWalk,
  denials: Denials,
  servedAgain: () => Promise<void>,
): Promise<SliceOutcome> {
  const { ingest, tally, signal } = intake;
  const answered = tally.answers;
  let reopened = false;
  try {
    ({ reopened } = await walkSlice(intake, walk, servedAgain));
    denials.noteFound(walk);
  } catch (error) {
    switch (judge(error, tally.answers)) {
      case "stop":
        throw error;
      case "absent": {
        const verdict = await denials.judge(intake, walk);
        if (verdict.kind === "doubted")
          return { kind: "failed", error: verdict.error, isStuck: verdict.isStuck };
        await ingest.call("commitUnserved", { line: walk.line, range: walk.range }, [], signal);
        tally.of(walk.line.stream).done += walk.range.to - walk.range.from;
        break;
      }
      case "forbidden":
        return { kind: "forbidden", error };
      default:
        return { kind: "failed", error, isStuck: isAnswered(error) || tally.answers > answered };
    }
  }
  return { kind: "filled", reopened };
}
