import { decodePage } from "../../ingest/decode/page.ts";
import { exitCode, Failure } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import { type HistoryStream, streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { priority } from "../../service/http/request.ts";
import { formatMillisecond, momentThatFinds } from "../../service/pagination/page.ts";
import { isUnserved } from "../../warehouse/coverage/not-found.ts";
import { hasRowsSince, otherServedLine } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type Intake, serviceNow } from "../context/context.ts";
import { judge, problemOf } from "../context/error-policy.ts";
import { lineKey } from "./gap-planner.ts";
import type { SliceWalk } from "./walk-slice.ts";

/** What a 404 for an index comes to: it is so, or the range stays open for this reason. */
export type DenialVerdict =
  | { readonly kind: "believed" }
  | { readonly kind: "doubted"; readonly error: Failure; readonly isStuck: boolean };

/** Two answers closer together than this are one fault. Shorter than the pause before anything is tried again. */
const APART_MS = 2_000;
/** What was found out about a path counts for so long: many lines may be denied at once. */
const WITNESS_COUNTS_MS = 10_000;
/** A row this far within the window has not left it while an answer travelled. */
const WINDOW_MARGIN = 600 * MICROS_PER_SECOND;

/**
 * Decides what a 404 is worth. Of an index that never had a record it says that there is none. One that has been served,
 * and still should be, is not buried on one answer: the service must say it twice, a pause apart, and must still find
 * another index: one that it has served or, since those may have been delisted together, any. Where it finds none, the path is
 * at fault.
 */
export class Denials {
  readonly #reader: Connection;
  /** On the monotonic clock: since when each line is denied. */
  readonly #since = new Map<string, number>();
  readonly #found = new Set<string>();
  readonly #witnessed = new Map<HistoryStream, { readonly at: number; readonly found: Promise<boolean> }>();

  constructor(reader: Connection) {
    this.#reader = reader;
  }

  /** The service has the index. */
  noteFound({ line }: SliceWalk): void {
    this.#since.delete(lineKey(line));
    this.#found.add(lineKey(line));
  }

  async judge(intake: Intake, walk: SliceWalk): Promise<DenialVerdict> {
    const { line, keptFor } = walk;
    const now = serviceNow(intake);
    const servedFrom = keptFor === null ? Number.MIN_SAFE_INTEGER : now - keptFor + WINDOW_MARGIN;
    if (isUnserved(this.#reader, line) || !hasRowsSince(this.#reader, line, servedFrom))
      return { kind: "believed" };
    // The service has the index, and fails at this range of it. Were the index gone since, its head would tell.
    if (!walk.isHead && this.#found.has(lineKey(line)))
      return { kind: "doubted", error: denied(walk), isStuck: true };
    const at = intake.clock.monotonic();
    const since = this.#since.get(lineKey(line)) ?? at;
    this.#since.set(lineKey(line), since);
    // That it was said once makes nothing hopeless, however many slices of the line have heard it.
    if (at - since < APART_MS) return { kind: "doubted", error: denied(walk), isStuck: false };
    if (!(await this.#isPathWell(intake, walk, servedFrom)))
      return { kind: "doubted", error: pathGone(walk), isStuck: true };
    this.#since.delete(lineKey(line));
    return { kind: "believed" };
  }

  /** Whether the path still finds another index that it has served, or any at all: all that we follow may be delisted. */
  #isPathWell(intake: Intake, { line, indexType }: SliceWalk, servedFrom: Micros): Promise<boolean> {
    const at = intake.clock.monotonic();
    const known = this.#witnessed.get(line.stream);
    if (known && at - known.at < WITNESS_COUNTS_MS) return known.found;
    const other = otherServedLine(this.#reader, line, servedFrom);
    const anyOfType = { indexType, ts: serviceNow(intake) };
    const found = findsOneOf(intake, line.stream, other ? [other, anyOfType] : [anyOfType]);
    this.#witnessed.set(line.stream, { at, found });
    return found;
  }
}

interface Sought {
  readonly indexType: string;
  /** Left out: any. */
  readonly indexId?: string;
  readonly ts: Micros;
}

async function findsOneOf(
  intake: Intake,
  stream: HistoryStream,
  witnesses: readonly Sought[],
): Promise<boolean> {
  const { client, tally, signal, log } = intake;
  const endpoint = streamTable[stream].endpoint;
  let code: string | undefined;
  for (const { ts, ...filters } of witnesses) {
    const query = { ...filters, timestamp: formatMillisecond(momentThatFinds(endpoint, ts)), size: 1 };
    try {
      const rows = await client.request(
        { endpoint, query, priority: priority.head, signal },
        async (body) => {
          const { rawCount } = decodePage(stream, decodeBody(body));
          return rawCount;
        },
      );
      if (rows > 0) return true;
    } catch (error) {
      if (judge(error, tally.answers) === "stop") throw error;
      code = problemOf(stream, undefined, error).code;
    }
  }
  log.error({ endpoint, code }, "the path finds nothing any more");
  return false;
}

export function isDenial(error: unknown): boolean {
  return error instanceof Failure && error.code === "denied";
}

function denied({ line, indexType, name }: SliceWalk): Failure {
  return new Failure(`${streamTable[line.stream].endpoint} no longer finds ${indexType} ${name} (404)`, {
    family: "retry",
    code: "denied",
    remedy: "it is asked again before it is believed: the service has served it",
    exit: exitCode.incomplete,
  });
}

function pathGone({ line }: SliceWalk): Failure {
  return new Failure(`${streamTable[line.stream].endpoint} finds nothing any more that it has served (404)`, {
    family: "retry",
    code: "upstream_version",
    remedy: "what is missing stays open; if it lasts, check service.baseUrl and tell the service's operator",
    exit: exitCode.incomplete,
  });
}
