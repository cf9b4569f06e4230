import type { UnknownField } from "../model/records.ts";
import type { Cancel } from "../runtime/clock.ts";
import type { FeedMessage } from "../service/feed-messages.ts";
import type { Intake } from "./intake.ts";

/** What the feed says by the thousand is stored, and logged, once in so long. */
const GATHER_MS = 10_000;
/** Names that are told apart; a service that makes up new ones would fill the table. */
const MOST_NAMES = 100;
const OTHERS = "(others)";

/** Counts the messages of the live feed that this version does not know, and stores the first of each kind as a sample. */
export class UnknownMessages {
  readonly #intake: Pick<Intake, "clock" | "ingest" | "log" | "signal">;
  readonly #names = new Set<string>();
  #gathered = new Map<string, UnknownField>();
  #cancel: Cancel | undefined;
  #stored: Promise<void> = Promise.resolve();

  constructor(intake: Pick<Intake, "clock" | "ingest" | "log" | "signal">) {
    this.#intake = intake;
  }

  hear({ event, sample, count }: Extract<FeedMessage, { kind: "unknown" }>): void {
    if (this.#names.size < MOST_NAMES) this.#names.add(event);
    const name = this.#names.has(event) ? event : OTHERS;
    const known = this.#gathered.get(name);
    this.#gathered.set(name, { name, sample: known?.sample ?? sample, count: (known?.count ?? 0) + count });
    this.#cancel ??= this.#intake.clock.after(GATHER_MS, () => this.#store());
  }

  /** Stores what is gathered. Never throws: whatever keeps a sample from the disk is met by the ticks as well. */
  async flush(): Promise<void> {
    this.#store();
    await this.#stored;
  }

  #store(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const events = [...this.#gathered.values()];
    this.#gathered = new Map();
    if (events.length === 0) return;
    const { ingest, log, signal } = this.#intake;
    const counts = Object.fromEntries(events.map(({ name, count }) => [name, count]));
    log.warn({ events: counts }, "the live feed said something that this version does not know");
    const storing = ingest.call("commitUnknownEvents", events, [], signal).catch((error: unknown) => {
      log.warn({ error: String(error) }, "a sample of unknown messages was not stored");
    });
    this.#stored = Promise.all([this.#stored, storing]).then(() => {});
  }
}
