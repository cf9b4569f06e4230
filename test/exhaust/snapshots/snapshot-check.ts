import type { Chooser } from "../choices.ts";
import { type Reached, replaySteps, type SmallWorld, type Step } from "../search.ts";
import { hasWhole, SnapshotClient } from "./snapshot-client.ts";
import { findFalseCoverage, findUncovered } from "./snapshot-judge.ts";
import {
  createSnapshotWorld,
  excludedListFaults,
  type ListFault,
  listFaults,
  marketsOf,
  partOf,
  refreshAt,
  type SnapshotSpec,
  type SnapshotWorld,
} from "./snapshot-world.ts";

export interface SnapshotBound {
  /** How many steps. */
  readonly depth: number;
  /** Wrong lists, and faults of the socket or of commits, in a sequence; kills. */
  readonly faults: number;
  readonly crashes: number;
  /** What the program has: a socket, polls, or both. */
  readonly steps: readonly SnapshotStepName[];
  /** Tries also what the assumptions of docs/promise.md exclude, and judges it. */
  readonly hasExcluded?: boolean;
}

export type SnapshotStepName = "slot" | "socket" | "poll";

interface State extends Reached<State> {
  readonly client: SnapshotClient;
  readonly faults: number;
  readonly crashes: number;
}

/** One subscription of a snapshot stream, and the program that follows it. */
export class SnapshotCheck implements SmallWorld<State, SnapshotStepName> {
  readonly start: State;
  readonly stepNames: readonly SnapshotStepName[];
  readonly depth: number;
  readonly spec: Omit<SnapshotCase, "steps">;
  readonly #world: SnapshotWorld;
  readonly #bound: SnapshotBound;
  /** What is wrong with a client, whatever may still happen. */
  readonly #judged = new Map<string, string | undefined>();

  constructor(spec: SnapshotSpec, bound: SnapshotBound) {
    this.spec = { world: spec };
    this.#world = createSnapshotWorld(spec);
    this.#bound = bound;
    const { faults, crashes } = bound;
    const client = new SnapshotClient(this.#world);
    this.start = { client, faults, crashes, before: undefined, step: undefined };
    this.stepNames = bound.steps;
    this.depth = bound.depth;
  }

  step(state: State, name: SnapshotStepName, chooser: Chooser): State {
    const client = new SnapshotClient(this.#world, state.client);
    const options = optionsOf[name](client, this.#bound.hasExcluded ?? false);
    const { faults, crashes } = state;
    const possible = Object.keys(options).filter(
      (each) => (isKill(each) ? crashes > 0 : faults > 0 || usual.has(each)) && options[each],
    );
    const chosen = possible.length > 0 ? chooser.choose(possible) : undefined;
    if (chosen !== undefined) options[chosen]?.();
    const isFault = chosen !== undefined && !usual.has(chosen) && !isKill(chosen);
    return {
      client,
      faults: faults - (isFault ? 1 : 0),
      crashes: crashes - (chosen !== undefined && isKill(chosen) ? 1 : 0),
      before: state,
      step: chosen === undefined || chosen === possible[0] ? [name] : [name, chosen],
    };
  }

  keyOf({ client, faults, crashes }: State): string {
    return `${faults} ${crashes} ${client.key}`;
  }

  judge({ client }: State): string | undefined {
    const { key } = client;
    if (!this.#judged.has(key)) this.#judged.set(key, this.#judge(client));
    return this.#judged.get(key);
  }

  #judge(client: SnapshotClient): string | undefined {
    const { steps, hasExcluded = false } = this.#bound;
    return findFalseCoverage(client, hasExcluded) ?? (hasExcluded ? undefined : findUncovered(client, steps));
  }
}

type Options = Readonly<Record<string, (() => void) | undefined>>;

/** What is no fault. */
const usual = new Set(["commit", "blocked", "commit one", "connect", "disconnect", "notice", "honest"]);
const isKill = (name: string) => name.startsWith("kill");

/** What may happen in a step, the usual first. */
const optionsOf: Readonly<
  Record<SnapshotStepName, (client: SnapshotClient, hasExcluded: boolean) => Options>
> = { slot: slotOptions, socket: socketOptions, poll: pollOptions };

/** A slot passes, and the queue of the feed is committed, or storage blocks it. */
function slotOptions(client: SnapshotClient, hasExcluded: boolean): Options {
  const after = new SnapshotClient(client.world, client);
  after.advance();
  const { batch } = after;
  const then = (work: () => void) => () => {
    client.advance();
    work();
  };
  const hasBatch = batch.length > 0;
  // If it waits until its period begins, it is a tick of the next period before one of this.
  const isFirstAhead = client.world.ahead?.includes(batch[0]?.market ?? " ");
  return {
    commit: then(() => client.commitAll()),
    blocked: after.queue.length > 0 && (hasExcluded || !isFirstAhead) ? then(() => {}) : undefined,
    "commit one": after.queue.length > 1 ? then(() => client.commitHead(batch.slice(0, 1))) : undefined,
    kill: client.silentMarket && !hasExcluded ? undefined : then(() => client.restart()),
    "kill after one":
      hasBatch && !client.silentMarket
        ? then(() => {
            client.commitHead(batch.slice(0, 1));
            client.restart();
          })
        : undefined,
    twice: hasBatch
      ? then(() => {
          client.commitTicks(batch);
          client.commitAll();
        })
      : undefined,
    reversed: batch.length > 1 ? then(() => commitReversed(client)) : undefined,
    lost: hasBatch && !client.silentMarket ? then(() => client.loseBatch()) : undefined,
    dropped: client.connection ? () => client.advance(true) : undefined,
  };
}

/** The ticks of each refresh in the other order. */
function commitReversed(client: SnapshotClient): void {
  const { batch } = client;
  client.commitHead(batch.toSorted((a, b) => a.refresh - b.refresh || b.market.localeCompare(a.market)));
  client.commitAll();
}

function socketOptions(client: SnapshotClient): Options {
  const { connection } = client;
  if (!connection) return { connect: () => client.connect() };
  if (connection.silent) return { notice: () => client.noticeSilence() };
  const { world } = client;
  const last = marketsOf(world, refreshAt(world, client.now)).at(-1);
  return {
    disconnect: () => client.disconnect(),
    silent: last !== undefined ? () => client.silence(last) : undefined,
  };
}

function pollOptions(client: SnapshotClient, hasExcluded: boolean): Options {
  const { world } = client;
  const newest = refreshAt(world, client.now);
  if (newest < 1) return { honest: () => client.poll("honest") };
  // An empty list does not say when it was made: the first one counts.
  const isDated = (refresh: number) => client.hadRows || marketsOf(world, refresh) !== "";
  const possible: Readonly<Record<ListFault, boolean>> = {
    cut: hasWhole(client, 0),
    "cut at once again": hasWhole(client, 0),
    // After an empty list a further one is no shorter: nobody could tell that it is false.
    empty: (client.hadRows && client.whole[partOf(world, "a")] !== 0) || hasExcluded,
    unreadable: true,
    stale: isDated(newest - 1),
    slow: isDated(refreshAt(world, client.now - 2)),
    forbidden: true,
    shortened: hasExcluded,
    torn: hasExcluded,
  };
  const faults = [...listFaults, ...excludedListFaults].map(
    (how) => [how, possible[how] ? () => client.poll(how) : undefined] as const,
  );
  return {
    honest: () => client.poll("honest"),
    ...Object.fromEntries(faults),
    "kill before coverage": client.silentMarket
      ? undefined
      : () => {
          client.poll("honest", true);
          client.restart();
        },
  };
}

export interface SnapshotCase {
  readonly world: SnapshotSpec;
  readonly steps: readonly Step<SnapshotStepName>[];
}

/** Takes the steps in the world, and tells what is wrong after the last one. `hasExcluded`: as if the assumptions did not hold. */
export function replaySnapshots(
  { world, steps }: SnapshotCase,
  hasExcluded = false,
): Promise<string | undefined> {
  const budget = Number.POSITIVE_INFINITY;
  const check = new SnapshotCheck(world, {
    depth: steps.length,
    faults: budget,
    crashes: budget,
    steps: [...new Set(steps.map(([name]) => name))],
    hasExcluded,
  });
  return replaySteps(check, steps);
}
