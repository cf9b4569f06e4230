/** Who waits: groups from the widest to the narrowest, such as an address and a client at it. */
type Groups = readonly [wide: string, narrow: string];

interface Waiting {
  readonly groups: Groups;
  readonly start: () => void;
}

interface FairQueueOptions {
  /** So much work is done at once. */
  readonly maxRunning: number;
  /** So many of one narrow group may wait. */
  readonly maxWaiting: number;
}

/** Does a few pieces of work at once. Groups take turns: one that asks for much waits for itself, not the others for it. */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #waiting: Waiting[] = [];
  /** How much each group has had since the queue was last empty. */
  readonly #turns = new Map<string, number>();
  #running = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /** Undefined: too many of the group wait already. */
  run<T>(groups: Groups, work: () => Promise<T>): Promise<T> | undefined {
    const own = this.#waiting.filter(
      ({ groups: [wide, narrow] }) => wide === groups[0] && narrow === groups[1],
    );
    if (own.length >= this.#options.maxWaiting) return undefined;
    const started = new Promise<void>((start) => this.#waiting.push({ groups, start }));
    const result = started.then(work).finally(() => {
      this.#running--;
      this.#startNext();
    });
    this.#startNext();
    return result;
  }

  #startNext(): void {
    if (this.#waiting.length === 0 && this.#running === 0) this.#turns.clear();
    while (this.#waiting.length > 0 && this.#running < this.#options.maxRunning) {
      const next = this.#waiting.reduce((first, each) => (this.#comesBefore(each, first) ? each : first));
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      for (const name of namesOf(next)) this.#turns.set(name, this.#turnsOf(name) + 1);
      this.#running++;
      next.start();
    }
  }

  #comesBefore(a: Waiting, b: Waiting): boolean {
    const [turnsOfA, turnsOfB] = [a, b].map((each) => namesOf(each).map((name) => this.#turnsOf(name)));
    const [wideA = 0, narrowA = 0] = turnsOfA ?? [];
    const [wideB = 0, narrowB = 0] = turnsOfB ?? [];
    return wideA < wideB || (wideA === wideB && narrowA < narrowB);
  }

  #turnsOf(name: string): number {
    return this.#turns.get(name) ?? 0;
  }
}

function namesOf({ groups: [wide, narrow] }: Waiting): string[] {
  return [wide, `${wide} ${narrow}`];
}
