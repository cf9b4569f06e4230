import type { ListSeen } from "../../ingest/commit/snapshot.ts";
import { Failure } from "../../model/failure.ts";
import { streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND } from "../../model/time.ts";
import { priority } from "../../service/http/request.ts";
import { heldPages, type Intake, requestText } from "../context/context.ts";
import { observeLists, PagesSeen } from "./record-snapshot.ts";

const stream = "exchange_ticks";
const { endpoint } = streamTable[stream];
/** A list that spans a refresh of the service is asked for again so often. */
const POLLS = 3;

export interface ExchangeTicksQuestion {
  /** Null: every exchange. */
  readonly exchangeId: string | null;
  /** Markets to keep; undefined: all. */
  readonly markets: ReadonlySet<string> | undefined;
  readonly refreshSeconds: number;
}

/**
 * Takes one snapshot of the tickers. A list of several pages may be torn by a refresh in between: its rows are kept,
 * each under its own moment, it is asked for again at once, and only a list of one moment counts as an observation.
 *
 * It is the ledger that tells a partial moment (`lost`, reason `not observed`), not a flag on its rows: each of them alone is
 * as true as any, and what is partial is what has no row to flag. A flag would also have to go again from rows that the
 * next, whole list repeats, and would read like a doubtful price to whoever filters by `quality`.
 */
export async function takeExchangeTicks(intake: Intake, question: ExchangeTicksQuestion): Promise<void> {
  const { log } = intake;
  const cadence = question.refreshSeconds * MICROS_PER_SECOND;
  for (let poll = 1; poll <= POLLS; poll++) {
    const list = await pollOnce(intake, question);
    const periods = new Set(list.moments.map((moment) => Math.floor(moment / cadence)));
    if (periods.size <= 1)
      return observeLists(intake, { stream, exchangeId: question.exchangeId, cadence, lists: [list] });
    log.debug({ exchangeId: question.exchangeId, poll }, "the list of tickers was torn by a refresh");
  }
  throw new Failure("no list of exchange tickers was of one moment: none is claimed", {
    family: "retry",
    code: "torn_list",
    remedy:
      "it is asked for again; if it lasts, the service takes longer to send the list than to refresh it",
  });
}

async function pollOnce(intake: Intake, { exchangeId, markets }: ExchangeTicksQuestion): Promise<ListSeen> {
  const { ingest, tally, signal } = intake;
  const filters = exchangeId === null ? {} : { exchangeId };
  const seen = new PagesSeen();
  const list = { endpoint, filters, priority: priority.head };
  for await (const { page } of heldPages(intake, list, { stream })) {
    const snapshot = {
      stream,
      held: page.held,
      request: requestText(endpoint, filters),
      ...(markets ? { markets } : {}),
    } as const;
    const commit = await ingest.call("commitSnapshot", snapshot, [], signal);
    tally.wrote(stream, commit.written, commit);
    seen.add(commit);
  }
  return seen.list();
}
