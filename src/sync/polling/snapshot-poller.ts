import type { DerivativeType, Stream } from "../../model/streams.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { runLoop, WakeSignal } from "../../runtime/clock.ts";
import { HOUR_MS, MINUTE_MS } from "../../service/limits.ts";
import {
  affectsWholeEndpoint,
  classifyError,
  type Problem,
  retryUntilDone,
  runConcurrently,
  type SyncContext,
  serviceNow,
  toProblem,
} from "../context/context.ts";
import { ProblemLog } from "../context/problem-log.ts";
import { fetchDerivativeTicks, findDerivativeExchanges } from "../fetch/derivatives.ts";
import { fetchExchangeTicks } from "../fetch/exchange-tickers.ts";
import { fetchMarketCaps } from "../fetch/record-snapshot.ts";
import { findNotices, noticesToProblems } from "../selection/selectors.ts";
import { type Directory, exchangeName, selectExchanges } from "../selection/targets.ts";

interface SnapshotPollingOptions {
  /** The current directory; undefined until the first selection. */
  readonly directory: () => Directory | undefined;
  /** Called with all problems of a part whenever they change. */
  readonly onProblems: (part: string, problems: readonly Problem[]) => void;
  /** Called with an error that ends the run. */
  readonly onFailure: (part: string, error: unknown) => void;
}

/** Key of problems that concern the whole stream. */
const WHOLE_STREAM = "";

/** Names the exchange that could not be fetched, unless others fail in the same way. */
function fetchProblem(stream: Stream, directory: Directory | undefined, id: string | null, error: unknown) {
  const isWhole = affectsWholeEndpoint(error) || id === null || id === WHOLE_STREAM;
  return toProblem(stream, isWhole ? undefined : exchangeName(directory, id), error);
}

/** Polls the snapshot streams that the live feed does not have: market capitalisations and derivatives. */
export async function pollSnapshots(
  context: SyncContext,
  { directory, onProblems, onFailure }: SnapshotPollingOptions,
): Promise<void> {
  const { clock, signal, stats } = context;
  const { marketCap, derivatives, lookups } = context.settings.streams;
  const exchangeFound = new WakeSignal();
  /** Exchanges that have derivatives, with the derivative types. */
  const exchangeTypes = new Map<string, readonly DerivativeType[]>();

  const createPart = (name: string, stream: Stream) => {
    const problems = new ProblemLog((changed) => onProblems(name, changed));
    return {
      problems,
      /** Returns whether the work succeeded. `key`: the exchange that a failure concerns. */
      async attempt(key: string, work: () => Promise<unknown>): Promise<boolean> {
        try {
          await work();
          problems.clear(key);
          return true;
        } catch (error) {
          if (signal.aborted) throw error;
          if (classifyError(error, stats.successCount) === "stop") onFailure(name, error);
          else problems.report(key, fetchProblem(stream, directory(), key, error));
          return false;
        }
      },
      repeat: (delayMs: () => number, runOnce: () => Promise<void>, wakeUp?: WakeSignal) =>
        runLoop({ clock, signal, delayMs, runOnce, onError: (error) => onFailure(name, error), wakeUp }),
    };
  };

  const pollMarketCaps = async ({ every }: { readonly every: number }) => {
    const { attempt, repeat } = createPart("market caps", "market_caps");
    await repeat(delayToNextPeriod(context, every), async () => {
      await attempt(WHOLE_STREAM, () => fetchMarketCaps(context, every));
    });
  };

  type DerivativeSettings = Exclude<typeof derivatives, false>;
  /** Runs in parallel to the tick polls, which must not wait for the contract lists of hundreds of exchanges. */
  const refreshContracts = async (settings: DerivativeSettings) => {
    const { problems, attempt, repeat } = createPart("derivative contracts", "derivative_contracts");
    const defaultMs = lookups === false ? HOUR_MS : lookups.every * 1000;
    /** False if some exchange could not be checked. */
    let isComplete = true;
    const delayMs = () => (isComplete ? defaultMs : Math.min(MINUTE_MS, defaultMs));
    await repeat(delayMs, async () => {
      const known = directory();
      isComplete = known !== undefined;
      if (!known) return;
      const before = new Set(exchangeTypes.keys());
      await findDerivativeExchanges(context, exchangeTypes, settings, known, async (ids, task) => {
        problems.retainOnly(ids);
        for (const id of ids) if (!(await attempt(id, () => task(id)))) isComplete = false;
      });
      if ([...exchangeTypes.keys()].some((id) => !before.has(id))) exchangeFound.notify();
    });
  };

  /** Polls once a period, and as soon as an exchange with derivatives is found. */
  const pollDerivatives = async ({ every }: DerivativeSettings) => {
    const { problems, attempt, repeat } = createPart("derivatives", "derivative_ticks");
    const poll = async () => {
      problems.retainOnly([...exchangeTypes.keys()]);
      const polls = [...exchangeTypes].map(([exchangeId, types]) =>
        attempt(exchangeId, () => fetchDerivativeTicks(context, exchangeId, types, every)),
      );
      await Promise.all(polls);
    };
    await repeat(delayToNextPeriod(context, every), poll, exchangeFound);
  };

  await Promise.all([
    marketCap !== false && pollMarketCaps(marketCap),
    derivatives !== false && refreshContracts(derivatives),
    derivatives !== false && pollDerivatives(derivatives),
  ]);
}

/**
 * Time until shortly after the start of a period of the service, the current one included: a poll that took until
 * its first moments must not pass over it. A fixed interval would drift and miss periods.
 */
export function delayToNextPeriod(context: Pick<SyncContext, "client" | "clock">, seconds: number) {
  return () => {
    const periodMs = seconds * 1000;
    const sinceDueMs = serviceNow(context) / MICROS_PER_MS - Math.min(1_000, periodMs / 4);
    // Timers drop fractions of a millisecond and would fire just before the moment.
    return Math.ceil(periodMs - (sinceDueMs % periodMs));
  };
}

/** Fetches one snapshot of the selected exchange tickers and derivatives. */
export async function fetchSnapshots(
  context: SyncContext,
  directory: Directory,
  includesStream: (stream: Stream) => boolean,
): Promise<Problem[]> {
  const { settings } = context;
  const problems: Problem[] = [];
  /** Runs a task for each exchange. If an endpoint fails as a whole, the client sends it no further requests. */
  const run = <Id extends string | null>(
    stream: Stream,
    exchangeIds: readonly Id[],
    task: (exchangeId: Id) => Promise<unknown>,
  ) =>
    runConcurrently(exchangeIds, settings.concurrency, async (exchangeId) => {
      try {
        await retryUntilDone(context, () => task(exchangeId));
      } catch (error) {
        if (classifyError(error, context.stats.successCount) === "stop") throw error;
        const problem = fetchProblem(stream, directory, exchangeId, error);
        const isReported = problems.some(
          (each) => each.stream === stream && each.message === problem.message,
        );
        if (!affectsWholeEndpoint(error) || !isReported) problems.push(problem);
      }
    });
  const notices = findNotices(settings, directory);
  const reportNotices = (of: Stream) =>
    void problems.push(...noticesToProblems(notices.filter(({ stream }) => stream === of)));

  if (includesStream("exchange_ticks")) {
    const { exchangeIds, markets, isResolved } = selectExchanges(settings, directory);
    reportNotices("exchange_ticks");
    await run("exchange_ticks", isResolved ? exchangeIds : [], (exchangeId) =>
      fetchExchangeTicks(context, exchangeId, markets),
    );
  }
  const { derivatives } = settings.streams;
  if (derivatives === false) return problems;
  if (!includesStream("derivative_ticks") && !includesStream("derivative_contracts")) return problems;
  reportNotices("derivative_contracts");
  const exchangeTypes = new Map<string, readonly DerivativeType[]>();
  await findDerivativeExchanges(context, exchangeTypes, derivatives, directory, (ids, task) =>
    run("derivative_contracts", ids, task),
  );
  if (includesStream("derivative_ticks"))
    await run("derivative_ticks", [...exchangeTypes.keys()], (exchangeId) =>
      fetchDerivativeTicks(context, exchangeId, exchangeTypes.get(exchangeId) ?? [], derivatives.every),
    );
  return problems;
}
