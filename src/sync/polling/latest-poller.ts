import type { DerivativeType, Stream } from "../../model/streams.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { loop } from "../../runtime/loop.ts";
import type { SyncedStreams } from "../context/context.ts";
import { type Intake, serviceNow } from "../context/context.ts";
import { isOfWholeEndpoint, judge, type Problem, problemOf } from "../context/error-policy.ts";
import { Complaints } from "../context/problem-log.ts";
import { refreshContracts, takeDerivativeTicks } from "../fetch/derivatives.ts";
import { takeMarketCaps } from "../fetch/market-caps.ts";
import type { Directory } from "../selection/directory.ts";
import { findSupported } from "./supported-derivatives.ts";

export interface LatestPolling {
  readonly streams: SyncedStreams;
  /** What the service lists at present. */
  readonly directory: () => Directory | undefined;
  /** What a part has to complain about, each time that changes. */
  readonly problems: (part: string, problems: readonly Problem[]) => void;
  /** A part cannot go on. */
  readonly failed: (part: string, error: unknown) => void;
}

/** After the contracts of an exchange could not be had. */
const ASK_AGAIN_MS = 60_000;
const HOUR_MS = 3_600_000;

/** A line for what concerns all of a stream. */
const WHOLE = "";

/** What one part polls, and what stands in its way: told once, however many lines it keeps from their data. */
interface Part {
  readonly name: string;
  readonly stream: Stream;
  readonly complaints: Complaints;
}

/** Polls at cadence what is never heard live: market capitalisations and derivatives. */
export class LatestPoller {
  readonly #intake: Intake;
  readonly #polling: LatestPolling;
  readonly #marketCapPart: Part;
  readonly #contractPart: Part;
  readonly #derivativePart: Part;
  /** The exchanges that have derivatives, with their types. */
  readonly #supported = new Map<string, readonly DerivativeType[]>();

  constructor(intake: Intake, polling: LatestPolling) {
    this.#intake = intake;
    this.#polling = polling;
    const part = (name: string, stream: Stream): Part => ({
      name,
      stream,
      complaints: new Complaints((problems) => polling.problems(name, problems)),
    });
    this.#marketCapPart = part("market caps", "market_caps");
    this.#contractPart = part("derivative contracts", "derivative_contracts");
    this.#derivativePart = part("derivatives", "derivative_ticks");
  }

  async run(): Promise<void> {
    await Promise.all([this.#marketCaps(), this.#contracts(), this.#derivatives()]);
  }

  async #marketCaps(): Promise<void> {
    const { marketCap } = this.#polling.streams;
    if (marketCap === false) return;
    const part = this.#marketCapPart;
    await this.#every(part, onGrid(this.#intake, marketCap.every), async () => {
      await this.#errand(part, WHOLE, async () => void (await takeMarketCaps(this.#intake, marketCap.every)));
    });
  }

  /** Beside the ticks, which cannot wait until hundreds of exchanges have been asked whether they have derivatives. */
  async #contracts(): Promise<void> {
    const { derivatives, lookups } = this.#polling.streams;
    if (derivatives === false) return;
    const usualMs = lookups === false ? HOUR_MS : lookups.every * 1000;
    let isWhole = true;
    const everyMs = () => (isWhole ? usualMs : Math.min(ASK_AGAIN_MS, usualMs));
    await this.#every(this.#contractPart, everyMs, async () => {
      isWhole = await this.#findSupported(derivatives);
    });
  }

  /** False: not every exchange could be asked. */
  async #findSupported(asked: Exclude<SyncedStreams["derivatives"], false>): Promise<boolean> {
    const directory = this.#polling.directory();
    if (!directory) return false;
    let isWhole = true;
    const refresh = (exchangeId: string, type: DerivativeType) =>
      refreshContracts(this.#intake, exchangeId, type);
    await findSupported(this.#supported, asked, directory, refresh, async (ids, errand) => {
      this.#contractPart.complaints.keepOnly([WHOLE, ...ids]);
      for (const id of ids) {
        const outcome = await this.#errand(this.#contractPart, id, () => errand(id));
        if (outcome !== "done") isWhole = false;
        if (outcome === "denied") return;
      }
    });
    return isWhole;
  }

  async #derivatives(): Promise<void> {
    const { derivatives } = this.#polling.streams;
    if (derivatives === false) return;
    const part = this.#derivativePart;
    await this.#every(part, onGrid(this.#intake, derivatives.every), async () => {
      part.complaints.keepOnly([WHOLE, ...this.#supported.keys()]);
      const errands = [...this.#supported].map(([exchangeId, types]) =>
        this.#errand(part, exchangeId, () =>
          takeDerivativeTicks(this.#intake, exchangeId, types, derivatives.every),
        ),
      );
      await Promise.all(errands);
    });
  }

  /** One exchange's trouble is not the others'; what the profile does not allow is denied to all of them. */
  async #errand(
    { name, stream, complaints }: Part,
    line: string,
    work: () => Promise<void>,
  ): Promise<"done" | "failed" | "denied"> {
    try {
      await work();
      complaints.settle(line);
      complaints.settle(WHOLE);
      return "done";
    } catch (error) {
      if (this.#intake.signal.aborted) throw error;
      const isDenied = isOfWholeEndpoint(error);
      if (judge(error, this.#intake.tally.answers) === "stop") this.#polling.failed(name, error);
      else if (isDenied || line === WHOLE) complaints.raise(WHOLE, problemOf(stream, undefined, error));
      else complaints.raise(line, problemOf(stream, this.#nameOf(line), error));
      return isDenied ? "denied" : "failed";
    }
  }

  #nameOf(exchangeId: string): string {
    const known = this.#polling.directory()?.exchanges.find(({ id }) => id === exchangeId);
    return known?.labels[0] ?? exchangeId;
  }

  #every(part: Part, everyMs: () => number, work: () => Promise<void>): Promise<void> {
    const { clock, signal } = this.#intake;
    const failed = (error: unknown) => this.#polling.failed(part.name, error);
    return loop({ clock, signal, everyMs, work, failed });
  }
}

/** A moment after each period of the service's clock begins: polls that drifted would miss one now and then. */
export function onGrid(intake: Pick<Intake, "client" | "clock">, seconds: number): () => number {
  return () => {
    const periodMs = seconds * 1000;
    const nowMs = serviceNow(intake) / MICROS_PER_MS;
    return periodMs - (nowMs % periodMs) + Math.min(1_000, periodMs / 4);
  };
}
