import { MICROS_PER_MS, type Micros, parseInstant } from "../model/instant.ts";
import type { Clock } from "../runtime/clock.ts";

/** Moments by the service's clock, learned from CONNECTED and PONG, so that a wrong local clock dates no gap wrongly. */
export class ServiceTime {
  readonly #clock: Clock;
  #heard: { readonly at: Micros; readonly boottime: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  hear(timestamp: string | undefined): void {
    const at = timestamp === undefined ? undefined : parseInstant(timestamp);
    if (at !== undefined) this.#heard = { at, boottime: this.#clock.boottime() };
  }

  now(): Micros {
    if (!this.#heard) return Math.round(this.#clock.now() * MICROS_PER_MS);
    const { at, boottime } = this.#heard;
    return at + Math.round((this.#clock.boottime() - boottime) * MICROS_PER_MS);
  }
}
