import { describe, expect, it } from "vitest";
import { exitCode, Failure } from "../../../src/model/failure.ts";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import {
  anchorForRow,
  CursorTrail,
  ceilToMillisecond,
  floorToMillisecond,
  formatToMillisecond,
  isDeadCursorError,
  paginationCycleFailure,
} from "../../../src/service/pagination/page.ts";

describe("timestamps in requests", () => {
  it("have three fractional digits", () => {
    expect(formatToMillisecond(1_500_999)).toBe("1970-01-01T00:00:01.500Z");
    expect([5000, 5001, 5999, -1].map(floorToMillisecond)).toEqual([5000, 5000, 5000, -1000]);
    expect([5000, 5001, 5999].map(ceilToMillisecond)).toEqual([5000, 6000, 6000]);
  });

  it("lie above the row that they must include, even if the service excludes the bound", () => {
    expect(anchorForRow("/index-ticker", 4999)).toBe(5000);
    expect(anchorForRow("/index-ticker", 5000)).toBe(6000);
    // The service may compare the timestamp with a bar's end.
    expect(anchorForRow("/ohlcv", 5000)).toBe(6000 + MICROS_PER_DAY);
  });
});

describe("a trail of cursors", () => {
  it("may be followed while each cursor is new", () => {
    const trail = new CursorTrail();
    for (const cursor of ["a", "b", "c"]) {
      expect(trail.check(cursor, 10)).toBeUndefined();
      trail.follow(cursor);
      expect(trail.has(cursor)).toBe(true);
    }
    expect(trail.has("d")).toBe(false);
  });

  it("is a cycle if a cursor repeats, unless its page is requested again", () => {
    const trail = new CursorTrail();
    trail.follow("a");
    expect(trail.check("a", 10)).toMatchObject({ event: "cycle", reason: "the cursors form a cycle" });
    trail.forget("a");
    expect(trail.check("a", 10)).toBeUndefined();
  });

  it("leads nowhere after more than five empty pages in a row", () => {
    const trail = new CursorTrail();
    const emptyPages = (count: number) =>
      Array.from({ length: count }, (_, i) => trail.check(`${i}`, 0)?.event).at(-1);
    expect(emptyPages(5)).toBeUndefined();
    expect(trail.check("x", 1)).toBeUndefined();
    expect(emptyPages(5)).toBeUndefined();
    trail.forgetEmptyPages();
    expect(emptyPages(5)).toBeUndefined();
    expect(trail.check("y", 0)).toMatchObject({ event: "empty_pages", reason: "all pages are empty" });
  });
});

describe("the failures of a walk", () => {
  it("leave the gap open, name the endpoint and the reason, and are retried", () => {
    expect(paginationCycleFailure("/ohlcv", "pages repeat")).toMatchObject({
      code: "pagination_cycle",
      family: "retry",
      exit: exitCode.incomplete,
      message: expect.stringMatching(/\/ohlcv.*pages repeat/) as string,
    });
  });

  it("show a dead cursor by a rejected or missing record", () => {
    const failure = (code: "rejected" | "not_found" | "timeout") => new Failure("x", { code });
    expect([failure("rejected"), failure("not_found"), failure("timeout")].map(isDeadCursorError)).toEqual([
      true,
      true,
      false,
    ]);
    expect(isDeadCursorError({ code: "rejected" })).toBe(false);
  });
});
