import { Failure } from "../../src/model/failure.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../src/model/time.ts";
import type { TimeRange } from "../../src/model/time-range.ts";
import { Parking } from "../../src/service/auth/parking.ts";
import { type PagePosition, walkHistoryPages } from "../../src/service/pagination/history-walk.ts";
import {
  type Answer,
  faults as allFaults,
  answer,
  emptyPage,
  type Fault,
  failureOf,
  type Page,
  type Query,
} from "./service.ts";
import { rulesAt, slotNow, type World } from "./world.ts";

export interface WalkRequest {
  /** The slot. */
  readonly now: number;
  readonly gap: TimeRange;
  readonly isHead: boolean;
  /** Ends without a page if nothing is there. */
  readonly isExploring: boolean;
  readonly knownEnd?: Micros | undefined;
}

/** What happens in a walk between one request and the next. */
export interface WalkPart {
  readonly pages: readonly { readonly page: Page; readonly position: PagePosition }[];
  /** The next request; undefined: the walk ends here. */
  readonly query: Query | undefined;
  /** The failure with which it ends. */
  readonly failure: Failure | undefined;
}

/**
 * The walks of a world, by the program's own code. A walk depends only on the service's answers, not on what is stored: each
 * is run once, and then looked up.
 */
export class Walks {
  readonly #world: World;
  readonly #faults: readonly Fault[];
  readonly #parts = new Map<string, WalkPart>();
  readonly #differing = new Map<string, readonly Answer[]>();

  constructor(world: World, faults: readonly Fault[] = allFaults) {
    this.#world = world;
    this.#faults = faults;
  }

  /** The part of a walk after these answers. */
  async follow(request: WalkRequest, answers: readonly Answer[]): Promise<WalkPart> {
    const { now, gap, isHead, isExploring, knownEnd } = request;
    const walk = `${now} ${gap.from} ${gap.to} ${isHead} ${isExploring} ${knownEnd}`;
    const found = this.#parts.get(`${walk} ${answers}`);
    if (found) return found;
    await this.#run(walk, request, answers);
    return this.#parts.get(`${walk} ${answers}`) as WalkPart;
  }

  /** Runs the walk with these answers, and honest ones after them, and stores every part. */
  async #run(walk: string, request: WalkRequest, script: readonly Answer[]): Promise<void> {
    const { now, gap } = request;
    const world = this.#world;
    const given: Answer[] = [];
    let pages: WalkPart["pages"] = [];
    const store = (query?: Query, failure?: Failure) => {
      this.#parts.set(`${walk} ${given}`, { pages, query, failure });
      pages = [];
    };
    const parking = new Parking({ monotonic: () => 0, boottime: () => 0 }, () => 0);
    // The service has sent lists of this kind before.
    const { endpoint, filters: query } = this.#options(request);
    parking.recordList({ endpoint, query }, 1);
    const client = {
      async request<T>({ query = {} }: { query?: Query }, read: (body: never) => Promise<T>): Promise<T> {
        store(query);
        const how = script[given.length] ?? "honest";
        given.push(how);
        const shown = answer(world, now, query, how);
        if (shown instanceof Failure && shown.code !== "null_list") throw shown;
        const asOf = world.isUndated
          ? undefined
          : slotNow(world, shown instanceof Failure ? now : shown.madeAt) / 1000;
        return read({ asOf, shown } as never);
      },
      onEvent: () => {},
      parking,
    };
    const read = async (body: unknown) => {
      const { shown, bytes } = body as { shown: Page | Failure; bytes?: Uint8Array };
      if (!(shown instanceof Failure)) {
        // As walkSlice does.
        const completeUntil = slotNow(world, shown.madeAt) - rulesAt(world, now).settleDelay;
        if (shown.isStale && gap.to > completeUntil) throw failureOf("stale_response");
        return shown;
      }
      if (bytes === undefined) throw shown;
      return emptyPage(now);
    };
    try {
      for await (const each of walkHistoryPages(client as never, this.#options(request), read))
        pages = [...pages, each];
      store();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      store(undefined, error);
    }
  }

  /** The answers that a query may get in a slot, the honest one first; none is like one before. */
  answersTo(now: number, query: Query): readonly Answer[] {
    const key = `${now} ${query.timestamp} ${query.startAfter} ${query.size}`;
    const known = this.#differing.get(key);
    if (known) return known;
    const seen = new Set<string>();
    const differing = (["honest", ...this.#faults] as const).filter((how) => {
      const shown = answer(this.#world, now, query, how);
      const text = shown instanceof Failure ? shown.code : JSON.stringify(shown);
      return !seen.has(text) && seen.add(text);
    });
    this.#differing.set(key, differing);
    return differing;
  }

  #options({ gap, isHead, isExploring, knownEnd, now: slot }: WalkRequest) {
    const world = this.#world;
    const now = slotNow(world, slot);
    const until =
      world.stream === "bars"
        ? gap.to + (isHead ? 2 : 1) * MICROS_PER_DAY
        : isHead
          ? Math.max(gap.to, now + MICROS_PER_SECOND)
          : gap.to;
    return {
      endpoint: world.stream === "bars" ? "/ohlcv" : "/index-ticker",
      filters: { indexType: "GWA", indexId: "x" },
      from: gap.from,
      until,
      coverageEnd: gap.to,
      cadence: world.period,
      isExploring,
      knownEnd,
    } as const;
  }
}
