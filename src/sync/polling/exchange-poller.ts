import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { runLoop, WakeSignal } from "../../runtime/loop.ts";
import { type SyncContext, serviceNow } from "../context/context.ts";
import { classifyError, type Problem, toProblem } from "../context/error-policy.ts";
import { ProblemLog } from "../context/problem-log.ts";
import { fetchExchangeTicks } from "../fetch/exchange-tickers.ts";
import type { DesiredSubscriptions } from "../live/desired-subscriptions.ts";
import type { SubscriptionCoverage } from "../live/subscription-coverage.ts";

interface ExchangePollerOptions {
  readonly refreshSeconds: number;
  readonly liveCoverage: SubscriptionCoverage;
  /** The current selection. */
  readonly selection: () => DesiredSubscriptions["selection"] | undefined;
  readonly nameOf: (exchangeId: string) => string;
  /** Time until the service's next refresh. */
  readonly delayMs: () => number;
  readonly onProblems: (problems: readonly Problem[]) => void;
  /** Called with an error that ends the run; must not throw. */
  readonly onFailure: (error: unknown) => void;
}

/** First delay before the same period is polled again; doubles with each poll. */
const REPOLL_DELAY_MS = 1_000;

/**
 * Polls the exchange tickers that the live feed does not deliver, once per cadence. Each exchange is polled on its own, so
 * that one slow response does not delay the others.
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
      delayMs: this.#options.delayMs,
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
      if (liveSince !== undefined && liveSince <= period) continue;
      if (this.#polledPeriods.get(exchangeId) === period || this.#inFlight.has(exchangeId)) continue;
      this.#startPoll(exchangeId, markets, period);
    }
  }

  /** Start of the service's current period. */
  #currentPeriod(): Micros {
    const cadence = this.#options.refreshSeconds * MICROS_PER_SECOND;
    return Math.floor(serviceNow(this.#context) / cadence) * cadence;
  }

  #startPoll(exchangeId: string | null, markets: ReadonlySet<string> | undefined, period: Micros): void {
    const poll = this.#poll(exchangeId, markets, period).finally(() => {
      this.#inFlight.delete(exchangeId);
      // While it was in flight, the loop has passed over a period that began meanwhile.
      if (this.#currentPeriod() !== period) this.#wakeUp.notify();
    });
    this.#inFlight.set(exchangeId, poll);
  }

  async #poll(
    exchangeId: string | null,
    markets: ReadonlySet<string> | undefined,
    period: Micros,
  ): Promise<void> {
    const { nameOf, onFailure } = this.#options;
    const key = exchangeId ?? "";
    try {
      if (await this.#pollUntilShown(exchangeId, markets, period))
        this.#polledPeriods.set(exchangeId, period);
      this.#problems.clear(key);
    } catch (error) {
      if (this.#context.signal.aborted) return;
      const exchangeName = exchangeId === null ? undefined : nameOf(exchangeId);
      if (classifyError(error, this.#context.stats.successCount) === "stop") onFailure(error);
      else this.#problems.report(key, toProblem("exchange_ticks", exchangeName, error));
    }
  }

  /**
   * The answer may show an earlier period: the service publishes late, or its clock is behind the estimate. If the feed has
   * begun in this period, no later poll and no tick covers it. Returns whether the period was shown.
   */
  async #pollUntilShown(
    exchangeId: string | null,
    markets: ReadonlySet<string> | undefined,
    period: Micros,
  ): Promise<boolean> {
    const { refreshSeconds, liveCoverage } = this.#options;
    const { clock, signal } = this.#context;
    for (let delayMs = REPOLL_DELAY_MS; ; delayMs *= 2) {
      const shown = await fetchExchangeTicks(this.#context, { exchangeId, markets, refreshSeconds });
      if (shown === undefined || shown >= period) return true;
      const liveSince = liveCoverage.exchangeLiveSince(exchangeId);
      if (liveSince === undefined || liveSince <= period) return false;
      await clock.sleep(delayMs, signal);
      if (this.#currentPeriod() !== period) return false;
    }
  }
}
