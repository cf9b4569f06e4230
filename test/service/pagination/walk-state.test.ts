import { describe, expect, it } from "vitest";
import type { PageSummary } from "../../../src/service/pagination/page.ts";
import { WalkState } from "../../../src/service/pagination/walk-state.ts";

const MS = 1000;

/** How many rows each page of these walks is requested with. */
const SIZE = 10;

function startWalk() {
  const events: string[] = [];
  const state = new WalkState({
    endpoint: "/index-ticker",
    until: 1000 * MS,
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

  it("has its tries back after an older row", () => {
    const { state } = startWalk();
    for (let i = 0; i < 3; i++) state.handleContradiction();
    state.accept(page(900), SIZE);
    for (let i = 0; i < 3; i++) state.handleContradiction();
    expect(() => state.handleContradiction()).toThrow(cycle);
  });
});

describe("a first page without rows that has a cursor", () => {
  it("is requested again twice; then the walk follows its cursor", () => {
    const { state, events } = startWalk();
    expect(state.shouldRetryBlankPage(page(undefined, undefined, { nextId: undefined }))).toBe(false);
    const answers = [1, 2, 3].map(() => state.shouldRetryBlankPage(page(undefined)));
    expect(answers).toEqual([true, true, false]);
    expect(events).toEqual(["empty_pages", "empty_pages"]);
  });
});
