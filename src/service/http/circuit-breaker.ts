import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";

/** So many failures in a row, over all streams, and the host counts as down. */
const FAILURES_TO_OPEN = 8;
const FIRST_PROBE_MS = 5_000;
const LONGEST_PROBE_MS = 60_000;

/** Who waits without end looks up now and then: no timer is set for ever. */
const LOOK_AGAIN_MS = 3_600_000;

/** The right to send one request; its holder says how it went, exactly once. */
export interface Pass {
  succeeded(): void;
  /** `floorMs`: nobody may ask again before that. */
  failed(floorMs: number): void;
  /** It came to nothing that says anything about the host. */
  dropped(): void;
}

/**
 * Stands before one host and is shared by all who ask it. A `Retry-After` holds everybody back; after a row of
 * failures only one probe at a time goes through, at growing intervals, so that an outage costs few
 * requests however many are waiting.
 */
export class HostGate {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #changed: (state: "closed" | "open") => void;
  readonly #waiting = new Set<() => void>();
  #pausedUntil = 0;
  #failures = 0;
  #openings = 0;
  #probeAt: number | undefined;
  #probing = false;

  constructor(clock: Clock, random: Random, changed: (state: "closed" | "open") => void) {
    this.#clock = clock;
    this.#random = random;
    this.#changed = changed;
  }

  get open(): boolean {
    return this.#probeAt !== undefined;
  }

  /** Nothing has failed since the last success. */
  get healthy(): boolean {
    return this.#failures === 0;
  }

  /** Waits until it is worth trying; false if that does not happen before `until` (monotonic). */
  async passable(until: number, signal: AbortSignal | undefined): Promise<boolean> {
    while (!this.#mayEnter()) {
      const now = this.#clock.monotonic();
      if (now >= until) return false;
      const due = this.#probing ? until : Math.max(this.#pausedUntil, this.#probeAt ?? 0);
      await this.#change(Math.min(due, until, now + LOOK_AGAIN_MS) - now, signal);
    }
    return true;
  }

  tryEnter(): Pass | undefined {
    if (!this.#mayEnter()) return undefined;
    const probe = this.open;
    if (probe) this.#probing = true;
    let said = false;
    const once = (say: () => void) => {
      if (said) return;
      said = true;
      if (probe) this.#probing = false;
      say();
      this.#wake();
    };
    return {
      succeeded: () => once(() => this.#succeeded()),
      failed: (floorMs) => once(() => this.#failed(floorMs, probe)),
      dropped: () => once(() => {}),
    };
  }

  #mayEnter(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#pausedUntil) return false;
    return this.#probeAt === undefined || (!this.#probing && now >= this.#probeAt);
  }

  #succeeded(): void {
    this.#failures = 0;
    if (!this.open) return;
    this.#probeAt = undefined;
    this.#openings = 0;
    this.#changed("closed");
  }

  #failed(floorMs: number, probe: boolean): void {
    this.#failures++;
    const now = this.#clock.monotonic();
    this.#pausedUntil = Math.max(this.#pausedUntil, now + floorMs);
    // Stragglers that were under way when the gate closed must not push the probe further out.
    const closesNow = !this.open && this.#failures >= FAILURES_TO_OPEN;
    if (!closesNow && !probe) return;
    const ceiling = Math.min(LONGEST_PROBE_MS, FIRST_PROBE_MS * 2 ** this.#openings++);
    this.#probeAt = now + ceiling * (0.5 + this.#random() / 2);
    if (closesNow) this.#changed("open");
  }

  #change(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = () => {
        cancel();
        this.#waiting.delete(wake);
        signal?.removeEventListener("abort", abort);
      };
      const wake = () => {
        leave();
        resolve();
      };
      const abort = () => {
        leave();
        reject(signal?.reason);
      };
      const cancel = this.#clock.after(ms, wake);
      this.#waiting.add(wake);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
