import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { runLoop, WakeSignal } from "../../runtime/clock.ts";
import type { SubscriptionStates } from "../../service/live/subscription-states.ts";
import { classifyError, type Problem, type SyncContext, serviceNow, toProblem } from "../context/context.ts";
import { ProblemLog } from "../context/problem-log.ts";
import { fetchExchangeTicks } from "../fetch/exchange-tickers.ts";
import type { DesiredSubscriptions } from "../live/desired-subscriptions.ts";
import type { SubscriptionCoverage } from "../live/subscription-coverage.ts";
import { delayToNextPeriod } from "./snapshot-poller.ts";

interface ExchangePollerOptions {
  readonly liveCoverage: SubscriptionCoverage;
  readonly subscriptions: Pick<SubscriptionStates, "get">;
  /** The current selection. */
  readonly selection: () => DesiredSubscriptions["selection"] | undefined;
  readonly nameOf: (exchangeId: string) => string;
  readonly onProblems: (problems: readonly Problem[]) => void;
  /** Called with an error that ends the run; must not throw. */
  readonly onFailure: (error: unknown) => void;
}

/** The service refreshes every record in every period: a tick that is later than this is polled. */
const MAX_TICK_DISTANCE_PERIODS = 1.25;

/**
 * Polls the exchange tickers that the live feed does not deliver, once per cadence, and in its middle if the answer showed an
 * earlier period or a live tick is missing. Each exchange is polled on its own, so that one slow response does not delay the others.
 */
export class ExchangePoller {
  readonly #context: SyncContext;
  readonly #options: ExchangePollerOptions;
  readonly #problems: ProblemLog;
  readonly #wakeUp = new WakeSignal();
  /** The period that the last successful poll was made in and has shown; key null: all exchanges. */
  readonly #polledPeriods = new Map<string | null, Micros>();
  readonly #inFlight = new Map<string | null, Promise<void>>();

  constructor(context: SyncContext, options: ExchangePollerOptions) {
    this.#context = context;
    this.#options = options;
    this.#problems = new ProblemLog(options.onProblems);
  }

  /** A live subscription ended or the selection changed: polls without waiting for the next period. */
  checkNow(): void {
    this.#wakeUp.notify();
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#context;
    await runLoop({
      clock,
      signal,
      delayMs: delayToNextPeriod(this.#context, this.#context.settings.refreshSeconds / 2),
      runOnce: async () => this.#pollDue(),
      onError: this.#options.onFailure,
      wakeUp: this.#wakeUp,
    });
    await Promise.allSettled(this.#inFlight.values());
  }

  #pollDue(): void {
    const { selection, liveCoverage } = this.#options;
    const { exchangeIds = [], markets, isResolved } = selection() ?? {};
    if (!isResolved) return;
    const period = this.#currentPeriod();
    for (const exchangeId of exchangeIds) {
      const liveSince = liveCoverage.exchangeLiveSince(exchangeId);
      if (liveSince !== undefined) this.#problems.clear(exchangeId ?? "");
      // A subscription covers the period in which it started only in part, so that period is polled.
      if (liveSince !== undefined && liveSince <= period && !this.#isOverdue(exchangeId, liveSince)) continue;
      if (this.#polledPeriods.get(exchangeId) === period || this.#inFlight.has(exchangeId)) continue;
      const poll = this.#poll(exchangeId, markets, period).finally(() => {
        this.#inFlight.delete(exchangeId);
        // While it was in flight, the loop has passed over a period that began meanwhile.
        if (this.#currentPeriod() !== period) this.#wakeUp.notify();
      });
      this.#inFlight.set(exchangeId, poll);
    }
  }

  /** A tick is missing: the feed has lost it, or the subscription began a moment later than it seemed. */
  #isOverdue(exchangeId: string | null, liveSince: Micros): boolean {
    const { liveCoverage, subscriptions } = this.#options;
    const received = liveCoverage
      .exchangeSubscriptions(exchangeId)
      .flatMap((key) => subscriptions.get(key)?.watch?.lastTickTs ?? []);
    const last = received.length > 0 ? Math.max(...received) : liveSince - this.#cadence;
    return serviceNow(this.#context) - last >= MAX_TICK_DISTANCE_PERIODS * this.#cadence;
  }

  get #cadence(): Micros {
    return this.#context.settings.refreshSeconds * MICROS_PER_SECOND;
  }

  /** Start of the service's current period. */
  #currentPeriod(): Micros {
    return Math.floor(serviceNow(this.#context) / this.#cadence) * this.#cadence;
  }

  async #poll(
    exchangeId: string | null,
    markets: ReadonlySet<string> | undefined,
    period: Micros,
  ): Promise<void> {
    const { nameOf, onFailure } = this.#options;
    const key = exchangeId ?? "";
    try {
      const shown = await fetchExchangeTicks(this.#context, exchangeId, markets);
      // The answer may show an earlier period: the service publishes late, or its clock is behind the estimate.
      if (shown === undefined || shown >= period) this.#polledPeriods.set(exchangeId, period);
      this.#problems.clear(key);
    } catch (error) {
      if (this.#context.signal.aborted) return;
      const exchangeName = exchangeId === null ? undefined : nameOf(exchangeId);
      if (classifyError(error, this.#context.stats.successCount) === "stop") onFailure(error);
      else this.#problems.report(key, toProblem("exchange_ticks", exchangeName, error));
    }
  }
}
