import { Alarm, loop } from "../runtime/loop.ts";
import { Complaints } from "./complaints.ts";
import { takeExchangeTicks } from "./exchange-ticks.ts";
import type { Intake } from "./intake.ts";
import type { LiveStanding } from "./live-standing.ts";
import type { LiveWishes } from "./live-wishes.ts";
import { judge, type Problem, problemOf } from "./trouble.ts";

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
    for (const exchangeId of lines) {
      if (standing.isExchangeHeard(exchangeId)) this.#complaints.settle(exchangeId ?? "");
      else if (!this.#underWay.has(exchangeId)) this.#begin(exchangeId, markets);
    }
  }

  #begin(exchangeId: string | null, markets: ReadonlySet<string> | undefined): void {
    const poll = this.#poll(exchangeId, markets).finally(() => this.#underWay.delete(exchangeId));
    this.#underWay.set(exchangeId, poll);
  }

  async #poll(exchangeId: string | null, markets: ReadonlySet<string> | undefined): Promise<void> {
    const { refreshSeconds, nameOf, failed } = this.#polling;
    const line = exchangeId ?? "";
    try {
      await takeExchangeTicks(this.#intake, { exchangeId, markets, refreshSeconds });
      this.#complaints.settle(line);
    } catch (error) {
      if (this.#intake.signal.aborted) return;
      const what = exchangeId === null ? undefined : nameOf(exchangeId);
      if (judge(error, this.#intake.tally.answers) === "stop") failed(error);
      else this.#complaints.raise(line, problemOf("exchange_ticks", what, error));
    }
  }
}
