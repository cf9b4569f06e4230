import { describe, expect, it } from "vitest";
import type { PageSummary } from "../../../src/service/pagination/page.ts";
import { WalkState } from "../../../src/service/pagination/walk-state.ts";

const MS = 1000;

/** How many rows each page of these walks is requested with. */
const SIZE = 10;

function startWalk({ until = 1000 * MS, isOneIndex = true } = {}) {
  const events: string[] = [];
  const state = new WalkState({
    endpoint: "/index-ticker",
    until,
    isOneIndex,
    onAnomaly: (event) => events.push(event),
  });
  return { state, events };
}

/** A page whose rows reach from `newest` to `oldest`, in milliseconds. */
function page(newest: number | undefined, oldest = newest, more: Partial<PageSummary> = {}): PageSummary {
  const micros = (ms: number | undefined) => (ms === undefined ? undefined : ms * MS);
  return {
    rows: newest === undefined ? 0 : 10,
    nextId: "next",
    newest: micros(newest),
    oldest: micros(oldest),
    isDescending: true,
    ...more,
  };
}

const cycle = expect.objectContaining({ code: "pagination_cycle" });

describe("a walk", () => {
  it("starts at its end, in whole milliseconds, and follows cursors", () => {
    const { state, events } = startWalk({ until: 999_001 });
    expect(state).toMatchObject({
      anchor: 1000 * MS,
      link: "timestamp",
      cursor: undefined,
      oldestTs: undefined,
    });
    expect(state.accept(page(900, 800), SIZE)).toBe(true);
    state.followCursor("a", 10);
    expect(state).toMatchObject({ link: "cursor", cursor: "a", oldestTs: 800 * MS, anchor: 1000 * MS });
    expect(events).toEqual([]);
  });

  it("knows whether a page is older", () => {
    const { state } = startWalk();
    expect(state.accept(page(undefined), SIZE)).toBe(false);
    expect(state.accept(page(900, 800), SIZE)).toBe(true);
    expect(state.accept(page(900, 800), SIZE)).toBe(false);
    expect(state.accept(page(950, 900), SIZE)).toBe(false);
    expect(state.oldestTs).toBe(800 * MS);
    expect(state.accept(page(800, 799), SIZE)).toBe(true);
  });

  it("has everything down to the last page's oldest row, to its newest if it is unordered", () => {
    const { state } = startWalk();
    const boundAfter = (summary: PageSummary) => {
      state.accept(summary, SIZE);
      return state.lowerBound;
    };
    expect(state.lowerBound).toBe(Number.POSITIVE_INFINITY);
    expect(boundAfter(page(900, 800))).toBe(800 * MS);
    expect(boundAfter(page(780, 700, { isDescending: false }))).toBe(780 * MS);
    expect(boundAfter(page(undefined))).toBe(Number.POSITIVE_INFINITY);
  });

  it("can restart at its oldest row if that is a new request", () => {
    const { state } = startWalk();
    expect(state.canRestart).toBe(false);
    state.accept(page(999), SIZE);
    expect(state.canRestart).toBe(false);
    state.accept(page(998), SIZE);
    expect(state.canRestart).toBe(true);
  });

  it("must not move forward after a cursor", () => {
    const { state } = startWalk();
    expect(state.movesForward(page(900))).toBe(false);
    state.accept(page(900, 800), SIZE);
    // Without a cursor the service may repeat rows.
    expect(state.movesForward(page(900))).toBe(false);
    state.followCursor("a", 10);
    expect([801, 800, 700, undefined].map((newest) => state.movesForward(page(newest)))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it("reports once that the service ignores the page size", () => {
    const { state, events } = startWalk();
    state.accept(page(900, 890, { rows: 10 }), SIZE);
    state.followCursor("a", 10);
    state.accept(page(880, 870, { rows: 7 }), SIZE);
    expect(events).toEqual([]);
    state.followCursor("b", 7);
    // A short page was not the last.
    state.accept(page(undefined), SIZE);
    expect(events).toEqual([]);
    state.accept(page(860, 850, { rows: 7 }), SIZE);
    state.accept(page(840, 830, { rows: 7 }), SIZE);
    expect(events).toEqual(["size_ignored"]);
  });

  it("does not take an empty first page for a short one", () => {
    const { state, events } = startWalk();
    state.accept(page(undefined), SIZE);
    state.followCursor("a", 0);
    state.accept(page(900, 890, { rows: 7 }), SIZE);
    expect(events).toEqual([]);
  });

  it("does not count a short page before a restart by timestamp", () => {
    const { state, events } = startWalk();
    state.accept(page(900, 890, { rows: 7 }), SIZE);
    state.accept(page(880, 870, { rows: 7 }), SIZE);
    expect(events).toEqual([]);
  });
});

describe("an unordered page", () => {
  it("is requested again three times, then accepted from there on", () => {
    const { state, events } = startWalk();
    const unordered = page(900, 800, { isDescending: false });
    expect(state.acceptsOrder(page(900))).toBe(true);
    expect([1, 2, 3, 4, 5].map(() => state.acceptsOrder(unordered))).toEqual([
      false,
      false,
      false,
      true,
      true,
    ]);
    expect(events).toEqual(Array(4).fill("unordered"));
  });

  it("has its tries back after progress", () => {
    const { state } = startWalk();
    const unordered = page(900, 800, { isDescending: false });
    for (let i = 0; i < 3; i++) state.acceptsOrder(unordered);
    state.accept(page(900, 800), SIZE);
    expect([1, 2, 3, 4].map(() => state.acceptsOrder(unordered))).toEqual([false, false, false, true]);
  });
});

describe("an empty first page with a cursor", () => {
  it("is requested three times in all", () => {
    const { state, events } = startWalk();
    expect([1, 2, 3, 4].map(() => state.shouldRetryBlankPage(page(undefined)))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(events).toEqual(["empty_pages", "empty_pages"]);
  });

  it("is not requested again without a cursor, with rows, or later in the walk", () => {
    const { state, events } = startWalk();
    expect(state.shouldRetryBlankPage(page(undefined, undefined, { nextId: undefined }))).toBe(false);
    expect(state.shouldRetryBlankPage(page(900))).toBe(false);
    state.followCursor("a", 0);
    expect(state.shouldRetryBlankPage(page(undefined))).toBe(false);
    const later = startWalk();
    later.state.accept(page(900), SIZE);
    expect(later.state.shouldRetryBlankPage(page(undefined))).toBe(false);
    expect(events).toEqual([]);
  });
});

describe("a walk without progress", () => {
  it("restarts at its oldest row when a cursor repeats", () => {
    const { state, events } = startWalk();
    state.accept(page(900, 800), SIZE);
    state.followCursor("a", 10);
    expect([state.isRepeating("a"), state.isRepeating("b")]).toEqual([true, false]);
    state.followCursor("a", 10);
    expect(events).toEqual(["cycle"]);
    expect(state).toMatchObject({ anchor: 801 * MS, link: "timestamp", cursor: undefined });
    // From there, the same cursor again is the end of patience.
    expect(() => state.followCursor("a", 10)).toThrow(cycle);
  });

  it("fails if there is no row to restart from", () => {
    const { state, events } = startWalk();
    state.followCursor("a", 10);
    expect(() => state.followCursor("a", 10)).toThrow(cycle);
    expect(events).toEqual(["cycle"]);
  });

  it.each([
    [true, 5],
    [false, 1000],
  ])("of one index (%s) restarts after more than %i pages without an older row", (isOneIndex, most) => {
    const { state, events } = startWalk({ isOneIndex });
    state.accept(page(900, 800), SIZE);
    const stall = (count: number) => {
      for (let i = 0; i < count; i++) state.accept(page(800), SIZE);
    };
    stall(most);
    expect(state.isRepeating("b")).toBe(false);
    state.followCursor("a", 10);
    expect(events).toEqual([]);
    stall(1);
    expect(state.isRepeating("b")).toBe(true);
    state.followCursor("b", 10);
    expect(events).toEqual(["no_progress"]);
    expect(state).toMatchObject({ anchor: 801 * MS, cursor: undefined });
    // The restart may take as many pages again; an older row resets the count.
    stall(most);
    expect(state.isRepeating("c")).toBe(false);
    state.accept(page(700), SIZE);
    stall(most);
    expect(state.isRepeating("c")).toBe(false);
  });

  it("says why it gives up", () => {
    const { state } = startWalk();
    for (let i = 0; i < 7; i++) state.accept(page(999), SIZE);
    expect(() => state.followCursor("a", 10)).toThrow("no page has older rows");
    const contradicted = startWalk().state;
    for (let i = 0; i < 3; i++) contradicted.handleContradiction();
    expect(() => contradicted.handleContradiction()).toThrow("pages contradict each other");
  });

  it("forgets the empty pages before a restart", () => {
    const { state, events } = startWalk({ isOneIndex: false });
    state.accept(page(900, 800), SIZE);
    for (let i = 0; i < 6; i++) state.followCursor(`a${i}`, 0);
    expect(events).toEqual(["empty_pages"]);
    state.accept(page(800, 700), SIZE);
    for (let i = 0; i < 5; i++) state.followCursor(`b${i}`, 0);
    expect(events).toEqual(["empty_pages"]);
  });
});

describe("the end of the history", () => {
  it.each<[what: string, given: PageSummary, isRepeated: boolean]>([
    ["a page that ends with the oldest row", page(800), true],
    ["a page that ends above it", page(801), false],
    ["a page without rows", page(undefined), false],
    ["a page with rows above the anchor", page(802, 800), false],
  ])("requested at the oldest row: %s", (_, given, isRepeated) => {
    const { state, events } = startWalk();
    state.accept(page(900, 800), SIZE);
    state.accept(page(800), SIZE);
    expect(state).toMatchObject({ isAtOldest: false, isOldestRepeated: false });
    state.restartAtEnd(false);
    expect(state).toMatchObject({ anchor: 801 * MS, cursor: undefined, isAtOldest: true });
    state.accept(given, SIZE);
    expect(state.isOldestRepeated).toBe(isRepeated);
    // An older row moves the end.
    state.accept(page(800, 700), SIZE);
    expect(state).toMatchObject({ isAtOldest: false, isOldestRepeated: false });
    expect(events).toEqual([]);
  });

  it("the cursor that led to nothing repeats; one that led to the oldest row is followed again", () => {
    for (const isOlder of [true, false]) {
      const { state } = startWalk();
      state.followCursor("a", 10);
      state.accept(page(900, 800), SIZE);
      state.restartAtEnd(isOlder);
      expect(state.isRepeating("a")).toBe(!isOlder);
    }
  });
});

describe("a page with records of other series", () => {
  it("is requested again, and accepted with all that follow if it comes three times", () => {
    const { state, events } = startWalk();
    expect(state.acceptsForeign(page(900, 800, { foreign: 0 }))).toBe(true);
    const answers = [1, 2, 3].map(() => state.acceptsForeign(page(900, 800, { foreign: 1 })));
    expect(answers).toEqual([false, false, true]);
    expect(state.acceptsForeign(page(800, 700, { foreign: 2 }))).toBe(true);
    expect(state.isForeignAccepted(page(800, 700, { foreign: 2 }))).toBe(true);
    expect(events).toEqual(["contradiction", "contradiction"]);
  });

  it.each<[what: string, other: Partial<PageSummary>]>([
    ["rows", { rows: 9 }],
    ["foreign records", { foreign: 2 }],
    ["cursor", { nextId: "other" }],
    ["oldest row", { oldest: 801 * MS }],
    ["newest row", { newest: 899 * MS }],
  ])("is left to the caller if it never comes again: another %s each time", (_, other) => {
    const { state } = startWalk();
    const pages = [{}, other, {}, other].map((more) => page(900, 800, { foreign: 1, ...more }));
    expect(pages.map((each) => state.acceptsForeign(each))).toEqual([false, false, false, true]);
    expect(state.isForeignAccepted(page(900, 800, { foreign: 1 }))).toBe(false);
  });

  it("is left to the caller at once if most are of other series", () => {
    const { state, events } = startWalk();
    expect(state.acceptsForeign(page(900, 800, { foreign: 11 }))).toBe(true);
    expect(state.acceptsForeign(page(undefined, undefined, { foreign: 2 }))).toBe(true);
    expect(events).toEqual([]);
    for (let i = 0; i < 3; i++) state.acceptsForeign(page(undefined, undefined, { foreign: 1 }));
    expect([1, 2].map((foreign) => state.isForeignAccepted(page(undefined, undefined, { foreign })))).toEqual(
      [true, false],
    );
  });
});

describe("a page that contradicts others", () => {
  it("is requested again at the same timestamp, three times", () => {
    const { state, events } = startWalk();
    for (let i = 0; i < 3; i++) state.handleContradiction();
    expect(events).toEqual(Array(3).fill("contradiction"));
    expect(() => state.handleContradiction()).toThrow(cycle);
  });

  it("restarts the walk at its oldest row, if there is one", () => {
    const { state, events } = startWalk();
    state.accept(page(900, 800), SIZE);
    state.followCursor("a", 10);
    state.handleContradiction();
    expect(events).toEqual(["contradiction"]);
    expect(state).toMatchObject({ anchor: 801 * MS, link: "timestamp" });
    // At that row already: the anchor is requested again, and its cursor is new.
    state.followCursor("b", 10);
    state.handleContradiction();
    expect(state).toMatchObject({ anchor: 801 * MS, cursor: undefined });
    expect(state.isRepeating("b")).toBe(false);
    expect(events).toEqual(["contradiction", "contradiction"]);
  });

  it("has its tries back after an older row", () => {
    const { state } = startWalk();
    for (let i = 0; i < 3; i++) state.handleContradiction();
    state.accept(page(900), SIZE);
    for (let i = 0; i < 3; i++) state.handleContradiction();
    expect(() => state.handleContradiction()).toThrow(cycle);
  });
});

describe("a dead cursor or a false end", () => {
  it.each([
    ["a dead cursor", (state: WalkState) => state.handleDeadCursor(), "dead_cursor"],
    ["an empty page without cursor", (state: WalkState) => state.handleFalseEnd(0), "dead_cursor"],
    ["a page with rows without cursor", (state: WalkState) => state.handleFalseEnd(7), "contradiction"],
  ])("%s: the walk restarts at its oldest row, else it counts as a contradiction", (_, handle, event) => {
    const { state, events } = startWalk();
    state.accept(page(900, 800), SIZE);
    state.followCursor("a", 10);
    handle(state);
    expect(state).toMatchObject({ anchor: 801 * MS, cursor: undefined });
    for (let i = 0; i < 3; i++) handle(state);
    expect(events).toEqual([event, "contradiction", "contradiction", "contradiction"]);
    expect(() => handle(state)).toThrow(cycle);
  });
});
