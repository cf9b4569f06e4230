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
export function createExchangePoller(context: SyncContext, options: ExchangePollerOptions) {
  const { clock, settings, signal, stats } = context;
  const { liveCoverage, subscriptions, selection, nameOf, onFailure } = options;
  const cadence = settings.refreshSeconds * MICROS_PER_SECOND;
  const problems = new ProblemLog(options.onProblems);
  const wakeUp = new WakeSignal();
  /** The period that the last successful poll was made in and has shown; key null: all exchanges. */
  const polledPeriods = new Map<string | null, Micros>();
  const inFlight = new Map<string | null, Promise<void>>();
  const currentPeriod = () => Math.floor(serviceNow(context) / cadence) * cadence;

  const pollDue = () => {
    const { exchangeIds = [], isResolved } = selection() ?? {};
    if (!isResolved) return;
    const period = currentPeriod();
    for (const exchangeId of exchangeIds) {
      const liveSince = liveCoverage.exchangeLiveSince(exchangeId);
      if (liveSince !== undefined) problems.clear(exchangeId ?? "");
      // A subscription covers the period in which it started only in part, so that period is polled.
      if (liveSince !== undefined && liveSince <= period && !isOverdue(exchangeId, liveSince)) continue;
      if (polledPeriods.get(exchangeId) === period || inFlight.has(exchangeId)) continue;
      const polling = poll(exchangeId, period).finally(() => {
        inFlight.delete(exchangeId);
        // While it was in flight, the loop has passed over a period that began meanwhile.
        if (currentPeriod() !== period) wakeUp.notify();
      });
      inFlight.set(exchangeId, polling);
    }
  };

  /** A tick is missing: the feed has lost it, or the subscription began a moment later than it seemed. */
  const isOverdue = (exchangeId: string | null, liveSince: Micros) => {
    const received = liveCoverage
      .exchangeSubscriptions(exchangeId)
      .flatMap((key) => subscriptions.get(key)?.watch?.lastTickTs ?? []);
    const last = received.length > 0 ? Math.max(...received) : liveSince - cadence;
    return serviceNow(context) - last >= MAX_TICK_DISTANCE_PERIODS * cadence;
  };

  const poll = async (exchangeId: string | null, period: Micros) => {
    const key = exchangeId ?? "";
    try {
      const shown = await fetchExchangeTicks(context, exchangeId, selection()?.markets);
      // The answer may show an earlier period: the service publishes late, or its clock is behind the estimate.
      if (shown === undefined || shown >= period) polledPeriods.set(exchangeId, period);
      problems.clear(key);
    } catch (error) {
      if (signal.aborted) return;
      const exchangeName = exchangeId === null ? undefined : nameOf(exchangeId);
      if (classifyError(error, stats.successCount) === "stop") onFailure(error);
      else problems.report(key, toProblem("exchange_ticks", exchangeName, error));
    }
  };

  return {
    /** A live subscription ended or the selection changed: polls without waiting for the next period. */
    checkNow: () => wakeUp.notify(),
    async run(): Promise<void> {
      const delayMs = delayToNextPeriod(context, settings.refreshSeconds / 2);
      await runLoop({ clock, signal, delayMs, runOnce: async () => pollDue(), onError: onFailure, wakeUp });
      await Promise.allSettled(inFlight.values());
    },
  };
}
