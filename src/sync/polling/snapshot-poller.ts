import { resolveSelector, type Selection } from "../../model/selector.ts";
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
  type SyncStreamSettings,
  serviceNow,
  toProblem,
} from "../context/context.ts";
import { ProblemLog } from "../context/problem-log.ts";
import { fetchDerivativeTicks, findDerivativeExchanges } from "../fetch/derivatives.ts";
import { fetchExchangeTicks } from "../fetch/exchange-tickers.ts";
import { fetchMarketCaps } from "../fetch/record-snapshot.ts";
import { noticesToProblems } from "../selection/refresh.ts";
import { type Directory, exchangeName, selectExchanges, selectorNotices } from "../selection/targets.ts";

interface SnapshotPollerOptions {
  /** The current directory; undefined until the first selection. */
  readonly directory: () => Directory | undefined;
  /** Called with all problems of a part whenever they change. */
  readonly onProblems: (part: string, problems: readonly Problem[]) => void;
  /** Called with an error that ends the run. */
  readonly onFailure: (part: string, error: unknown) => void;
}

/** Key of problems that concern the whole stream. */
const WHOLE_STREAM = "";

/** One polled stream and its problems. */
interface PollerPart {
  readonly name: string;
  readonly stream: Stream;
  readonly problems: ProblemLog;
}

/** Polls the snapshot streams that the live feed does not have: market capitalisations and derivatives. */
export class SnapshotPoller {
  readonly #context: SyncContext;
  readonly #options: SnapshotPollerOptions;
  readonly #marketCapPart: PollerPart;
  readonly #contractPart: PollerPart;
  readonly #derivativePart: PollerPart;
  readonly #exchangeFound = new WakeSignal();
  /** Exchanges that have derivatives, with the derivative types. */
  readonly #exchangeTypes = new Map<string, readonly DerivativeType[]>();

  constructor(context: SyncContext, options: SnapshotPollerOptions) {
    this.#context = context;
    this.#options = options;
    const part = (name: string, stream: Stream): PollerPart => ({
      name,
      stream,
      problems: new ProblemLog((problems) => options.onProblems(name, problems)),
    });
    this.#marketCapPart = part("market caps", "market_caps");
    this.#contractPart = part("derivative contracts", "derivative_contracts");
    this.#derivativePart = part("derivatives", "derivative_ticks");
  }

  async run(): Promise<void> {
    await Promise.all([this.#pollMarketCaps(), this.#refreshContracts(), this.#pollDerivatives()]);
  }

  async #pollMarketCaps(): Promise<void> {
    const { marketCap } = this.#context.settings.streams;
    if (marketCap === false) return;
    const part = this.#marketCapPart;
    await this.#repeat(part, delayToNextPeriod(this.#context, marketCap.every), async () => {
      await this.#attempt(
        part,
        WHOLE_STREAM,
        async () => void (await fetchMarketCaps(this.#context, marketCap.every)),
      );
    });
  }

  /** Runs in parallel to the tick polls, which must not wait for the contract lists of hundreds of exchanges. */
  async #refreshContracts(): Promise<void> {
    const { derivatives, lookups } = this.#context.settings.streams;
    if (derivatives === false) return;
    const defaultMs = lookups === false ? HOUR_MS : lookups.every * 1000;
    let isComplete = true;
    const delayMs = () => (isComplete ? defaultMs : Math.min(MINUTE_MS, defaultMs));
    const findExchanges = async () => {
      isComplete = await this.#findExchanges(derivatives);
    };
    await this.#repeat(this.#contractPart, delayMs, findExchanges);
  }

  /** Returns false if some exchange could not be checked. */
  async #findExchanges(settings: Exclude<SyncStreamSettings["derivatives"], false>): Promise<boolean> {
    const directory = this.#options.directory();
    if (!directory) return false;
    const before = new Set(this.#exchangeTypes.keys());
    let isComplete = true;
    await findDerivativeExchanges(
      this.#context,
      this.#exchangeTypes,
      settings,
      directory,
      async (ids, task) => {
        this.#contractPart.problems.retainOnly(ids);
        for (const id of ids)
          if (!(await this.#attempt(this.#contractPart, id, () => task(id)))) isComplete = false;
      },
    );
    if ([...this.#exchangeTypes.keys()].some((id) => !before.has(id))) this.#exchangeFound.notify();
    return isComplete;
  }

  /** Polls once a period, and as soon as an exchange with derivatives is found. */
  async #pollDerivatives(): Promise<void> {
    const { derivatives } = this.#context.settings.streams;
    if (derivatives === false) return;
    const part = this.#derivativePart;
    const poll = async () => {
      part.problems.retainOnly([...this.#exchangeTypes.keys()]);
      const polls = [...this.#exchangeTypes].map(([exchangeId, types]) =>
        this.#attempt(part, exchangeId, () =>
          fetchDerivativeTicks(this.#context, exchangeId, types, derivatives.every),
        ),
      );
      await Promise.all(polls);
    };
    const delayMs = delayToNextPeriod(this.#context, derivatives.every);
    await this.#repeat(part, delayMs, poll, this.#exchangeFound);
  }

  /** Returns whether the work succeeded. `key`: the exchange that a failure concerns. */
  async #attempt(
    { name, stream, problems }: PollerPart,
    key: string,
    work: () => Promise<void>,
  ): Promise<boolean> {
    try {
      await work();
      problems.clear(key);
      return true;
    } catch (error) {
      if (this.#context.signal.aborted) throw error;
      const isWhole = affectsWholeEndpoint(error) || key === WHOLE_STREAM;
      const what = isWhole ? undefined : exchangeName(this.#options.directory(), key);
      if (classifyError(error, this.#context.stats.successCount) === "stop")
        this.#options.onFailure(name, error);
      else problems.report(key, toProblem(stream, what, error));
      return false;
    }
  }

  #repeat(
    part: PollerPart,
    delayMs: () => number,
    runOnce: () => Promise<void>,
    wakeUp?: WakeSignal,
  ): Promise<void> {
    const { clock, signal } = this.#context;
    const onError = (error: unknown) => this.#options.onFailure(part.name, error);
    return runLoop({ clock, signal, delayMs, runOnce, onError, wakeUp });
  }
}

/**
 * Time until shortly after the start of a period of the service, the current one included: a poll that took until
 * its first moments must not pass over it. A fixed interval would drift and miss periods.
 */
export function delayToNextPeriod(
  context: Pick<SyncContext, "client" | "clock">,
  seconds: number,
): () => number {
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
        const isWhole = affectsWholeEndpoint(error) || exchangeId === null;
        const problem = toProblem(stream, isWhole ? undefined : exchangeName(directory, exchangeId), error);
        const isReported = problems.some(
          (each) => each.stream === stream && each.message === problem.message,
        );
        if (!affectsWholeEndpoint(error) || !isReported) problems.push(problem);
      }
    });
  const report = (stream: Stream, setting: string, selection: Selection) =>
    void problems.push(...noticesToProblems(stream, selectorNotices(setting, selection)));

  if (includesStream("exchange_ticks")) {
    const { exchangeIds, markets, isResolved, selections } = selectExchanges(settings, directory);
    for (const [setting, selection] of selections) report("exchange_ticks", setting, selection);
    await run("exchange_ticks", isResolved ? exchangeIds : [], (exchangeId) =>
      fetchExchangeTicks(context, { exchangeId, markets }),
    );
  }
  const { derivatives } = settings.streams;
  if (derivatives === false) return problems;
  if (!includesStream("derivative_ticks") && !includesStream("derivative_contracts")) return problems;
  const exchanges = resolveSelector(derivatives.exchanges, directory.exchanges, undefined);
  report("derivative_contracts", "sync.derivatives.exchanges", exchanges);
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
