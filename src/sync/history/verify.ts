import { Failure } from "../../model/failure.ts";
import { cadenceOf, historyStreams, isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { normalise, subtract } from "../../model/time-range.ts";
import type { Random } from "../../runtime/backoff.ts";
import { settledLines } from "../../warehouse/coverage/gaps.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type Intake, learnServiceTime, serviceNow } from "../context/context.ts";
import { judge, type Problem, problemOf } from "../context/error-policy.ts";
import { persistently, workThrough } from "../context/retry.ts";
import { settleDelay } from "../selection/targets.ts";
import { cutOnGrid, gridCell, reachable, slicesOf } from "./slices.ts";
import { EDGE_MARGIN, type SliceWalk, type Walked, walkSlice } from "./walk-slice.ts";

export interface Verifying {
  readonly reader: Connection;
  readonly random: Random;
  readonly refreshSeconds: number;
  readonly concurrency: number;
  /** How many stretches are compared, drawn by chance, or which; undefined: all of them. */
  readonly sample: number | ((stretches: readonly SliceWalk[]) => readonly SliceWalk[]) | undefined;
}

/** A stretch that was not as the service has it, and now is. */
export interface Difference extends Walked {
  readonly stream: string;
  readonly name: string;
  readonly indexType: string;
  readonly from: Micros;
  readonly to: Micros;
}

export interface Verified {
  readonly stretches: number;
  readonly rows: number;
  readonly differences: readonly Difference[];
  readonly problems: readonly Problem[];
}

/**
 * Walks over what is settled once more. A page is authoritative for the range that it proves, so whatever differs is put
 * right by the same commit, and what stood there before is in `revisions`.
 */
export async function verify(intake: Intake, verifying: Verifying): Promise<Verified> {
  const { random, sample, concurrency } = verifying;
  const { clock, signal, tally } = intake;
  // Without the service's time nobody knows what is still within its window.
  await learnServiceTime(intake, random);
  const every = stretches(verifying, serviceNow(intake));
  const chosen =
    typeof sample === "function" ? sample(every) : sample === undefined ? every : pick(every, sample, random);
  const waiting = { clock, random, signal, answers: () => tally.answers };
  const differences: Difference[] = [];
  const problems: Problem[] = [];
  let rows = 0;
  await workThrough(chosen, Math.ceil(concurrency * 1.5), async (walk) => {
    try {
      const walked = await persistently(waiting, () => walkSlice(intake, walk));
      rows += walked.received;
      if (walked.missing + walked.changed + walked.withdrawn === 0) return;
      const { line, name, indexType, range } = walk;
      differences.push({ stream: line.stream, name, indexType, ...range, ...walked });
    } catch (error) {
      const verdict = judge(error, tally.answers);
      if (verdict === "stop") throw error;
      // An index that the service does not know has no records there, and the ledger says so.
      if (verdict === "absent") return;
      problems.push(problemOf(walk.line.stream, `${walk.indexType} ${walk.name}`, error));
      // The service contradicts what is settled: nobody knows now what is true there, and the filler asks again.
      if (error instanceof Failure && error.code === "alarm") {
        await intake.ingest.call("commitRetraction", { line: walk.line, range: walk.range }, [], signal);
      }
    }
  });
  differences.sort((a, b) => a.stream.localeCompare(b.stream) || b.to - a.to);
  return { stretches: chosen.length, rows, differences, problems };
}

/** All that is settled and can still be asked for, in pieces of one walk each. */
function stretches({ reader, refreshSeconds }: Verifying, now: Micros): SliceWalk[] {
  return historyStreams.flatMap((stream) => {
    const cadence = cadenceOf(stream, refreshSeconds);
    // A walk also meets what is a little younger than its range. That must be settled too: what is provisional differs.
    const youngest = Math.floor((now - settleDelay(refreshSeconds)) / cadence - 2) * cadence;
    return settledLines(reader, stream).flatMap(({ proven, ...line }) => {
      const edge = line.keptFor === null ? undefined : now - line.keptFor + EDGE_MARGIN;
      const open = subtract(reachable(normalise(proven), edge), [
        { from: youngest, to: Number.POSITIVE_INFINITY },
      ]);
      // Always the same pieces, so that whoever compares some of them each night comes round.
      const pieces = isDaily(stream) ? open : cutOnGrid(open, cadence);
      const slices = slicesOf({ stream, open: pieces, claim: Number.POSITIVE_INFINITY, edge, cadence });
      return slices.map((slice) => ({
        ...slice,
        ...line,
        isHead: false,
        compares: true,
        cadence,
        hindrance: null,
      }));
    });
  });
}

function pick<T>(items: readonly T[], count: number, random: Random): T[] {
  const left = [...items];
  const picked: T[] = [];
  while (picked.length < count && left.length > 0) {
    const at = Math.floor(random() * left.length);
    picked.push(...left.splice(at, 1));
  }
  return picked;
}

/** Each divides the next: when the warehouse grows, what was due tonight is due tonight or in a further turn's half. */
const TURNS = [1, 3, 15, 30];
/** Little is compared often, much is not compared at once. */
const NIGHTLY = { least: 20, most: 500 };

/** In how many nights all of so many stretches are compared: in thirty, unless they are very few or very many. */
export function nightsOfTurn(stretches: number): number {
  let nights = TURNS.findLast((turn) => stretches / turn >= NIGHTLY.least) ?? 1;
  while (stretches / nights > NIGHTLY.most) nights *= 2;
  return nights;
}

/**
 * What is to be compared in the night of `now`. Each stretch has its own night of the turn, which follows from the series
 * and the time that it covers: nothing has to be remembered, and nothing is left out for longer than a turn.
 */
export function dueTonight(stretches: readonly SliceWalk[], now: Micros): readonly SliceWalk[] {
  const nights = nightsOfTurn(stretches.length);
  const tonight = Math.floor(now / MICROS_PER_DAY) % nights;
  return stretches.filter((stretch) => nightOf(stretch, nights) === tonight);
}

/** A prime, so that neighbouring series, and the single stretch that each series of bars is, are spread over the turn. */
const SPREAD = 7919;

function nightOf({ line, range, cadence }: SliceWalk, nights: number): number {
  const cell = isDaily(line.stream) ? 0 : gridCell(range, cadence);
  return (line.series * SPREAD + cell) % nights;
}
