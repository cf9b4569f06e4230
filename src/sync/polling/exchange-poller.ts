import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { Alarm, loop } from "../../runtime/loop.ts";
import { type Intake, serviceNow } from "../context/context.ts";
import { judge, type Problem, problemOf } from "../context/error-policy.ts";
import { Complaints } from "../context/problem-log.ts";
import { takeExchangeTicks } from "../fetch/exchange-tickers.ts";
import type { LiveWishes } from "../live/desired-subscriptions.ts";
import type { LiveStanding } from "../live/subscription-coverage.ts";

export interface ExchangePolling {
  readonly refreshSeconds: number;
  readonly standing: LiveStanding;
  /** What is wanted at present. */
  readonly selection: () => LiveWishes["selection"] | undefined;
  readonly nameOf: (exchangeId: string) => string;
  /** Until the next refresh of the service. */
  readonly everyMs: () => number;
  readonly problems: (problems: readonly Problem[]) => void;
  /** Nothing can go on; must not throw. */
  readonly failed: (error: unknown) => void;
}

/**
 * Polls at cadence the exchange tickers that are not heard live. Exchanges are independent of each other: the list of one
 * that hangs delays no other's.
 */
export class ExchangePoller {
  readonly #intake: Intake;
  readonly #polling: ExchangePolling;
  readonly #complaints: Complaints;
  readonly #alarm = new Alarm();
  /** The period in which a line was polled last. */
  readonly #polled = new Map<string | null, Micros>();
  readonly #underWay = new Map<string | null, Promise<void>>();

  constructor(intake: Intake, polling: ExchangePolling) {
    this.#intake = intake;
    this.#polling = polling;
    this.#complaints = new Complaints(polling.problems);
  }

  /** Something is no longer heard live, or wanted anew. */
  lookAgain(): void {
    this.#alarm.ring();
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#intake;
    await loop({
      clock,
      signal,
      everyMs: this.#polling.everyMs,
      work: async () => this.#round(),
      failed: this.#polling.failed,
      woken: (until) => this.#alarm.wait(until),
    });
    await Promise.allSettled(this.#underWay.values());
  }

  #round(): void {
    const { selection, standing } = this.#polling;
    const { lines = [], markets, isResolved } = selection() ?? {};
    if (!isResolved) return;
    const period = this.#period();
    for (const exchangeId of lines) {
      const since = standing.sinceOfExchange(exchangeId);
      if (since !== undefined) this.#complaints.settle(exchangeId ?? "");
      // The period in which a line came to be heard is heard in part only.
      if (since !== undefined && since <= period) continue;
      if (this.#polled.get(exchangeId) === period || this.#underWay.has(exchangeId)) continue;
      this.#begin(exchangeId, markets, period);
    }
  }

  /** The beginning of the service's present period. */
  #period(): Micros {
    const cadence = this.#polling.refreshSeconds * MICROS_PER_SECOND;
    return Math.floor(serviceNow(this.#intake) / cadence) * cadence;
  }

  #begin(exchangeId: string | null, markets: ReadonlySet<string> | undefined, period: Micros): void {
    const poll = this.#poll(exchangeId, markets, period).finally(() => this.#underWay.delete(exchangeId));
    this.#underWay.set(exchangeId, poll);
  }

  async #poll(
    exchangeId: string | null,
    markets: ReadonlySet<string> | undefined,
    period: Micros,
  ): Promise<void> {
    const { refreshSeconds, nameOf, failed } = this.#polling;
    const line = exchangeId ?? "";
    try {
      await takeExchangeTicks(this.#intake, { exchangeId, markets, refreshSeconds });
      this.#polled.set(exchangeId, period);
      this.#complaints.settle(line);
    } catch (error) {
      if (this.#intake.signal.aborted) return;
      const what = exchangeId === null ? undefined : nameOf(exchangeId);
      if (judge(error, this.#intake.tally.answers) === "stop") failed(error);
      else this.#complaints.raise(line, problemOf("exchange_ticks", what, error));
    }
  }
}
