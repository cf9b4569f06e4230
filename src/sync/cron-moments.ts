import { parse } from "node-cron";
import { MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../model/instant.ts";

const MINUTE = 60_000 * MICROS_PER_MS;
/** A 29 February comes within eight years, also around 2100. */
const FARTHEST_DAYS = 8 * 366 + 1;

/** The moments of a cron expression in UTC: pure arithmetic, since timers belong to the injected clock. */
export class CronMoments {
  /** Of a day, ascending. */
  readonly #minutes: readonly number[];
  readonly #isDay: (midnight: Micros) => boolean;

  constructor(expression: string) {
    const { minute, hour, dayOfMonth, month, dayOfWeek } = parse(expression);
    this.#minutes = hour
      .flatMap((each) => minute.map((within) => each * 60 + within))
      .toSorted((a, b) => a - b);
    const days = new Set(dayOfMonth.map(Number));
    const months = new Set(month);
    const weekdays = new Set(dayOfWeek.map((day) => Number(day) % 7));
    this.#isDay = (midnight) => {
      const date = new Date(midnight / MICROS_PER_MS);
      return (
        months.has(date.getUTCMonth() + 1) && days.has(date.getUTCDate()) && weekdays.has(date.getUTCDay())
      );
    };
  }

  /** The latest moment at or before `at`. */
  latest(at: Micros): Micros {
    return this.#search(at, -1, (moment) => moment <= at);
  }

  /** The first moment after `at`. */
  next(at: Micros): Micros {
    return this.#search(at, 1, (moment) => moment > at);
  }

  #search(at: Micros, step: 1 | -1, fits: (moment: Micros) => boolean): Micros {
    const today = Math.floor(at / MICROS_PER_DAY) * MICROS_PER_DAY;
    for (let day = 0; day < FARTHEST_DAYS; day++) {
      const midnight = today + step * day * MICROS_PER_DAY;
      if (!this.#isDay(midnight)) continue;
      const moments = this.#minutes.map((minute) => midnight + minute * MINUTE);
      const found = step === 1 ? moments.find(fits) : moments.findLast(fits);
      if (found !== undefined) return found;
    }
    throw new Error("a schedule whose moment never comes");
  }
}
