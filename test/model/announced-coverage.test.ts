import { describe, expect, it } from "vitest";
import {
  type AnnouncedRange,
  formatAnnouncedRanges,
  parseAnnouncedCoverage,
} from "../../src/model/announced-coverage.ts";

const parse = (headers: Record<string, string>) => parseAnnouncedCoverage((name) => headers[name]);
const hour = "open from=1970-01-01T00:00:00Z to=1970-01-01T01:00:00Z";
const serve = { server: "mds-sync/1.0.0" };

describe("the announced coverage", () => {
  it("is read as it was written", () => {
    const ranges: AnnouncedRange[] = [
      { from: 5_000_001, to: 9_000_000, state: "open", reason: null },
      { from: 0, to: 1, state: "lost", reason: "aged out, long ago" },
      { from: 1, to: 5_000_000, state: "empty", reason: "nothing older" },
    ];
    const text = formatAnnouncedRanges(ranges) ?? "";
    expect(parse({ ...serve, "x-mds-coverage": text })?.ranges).toEqual(ranges);
    expect(text.split(", lost")[0]).toBe(
      "open from=1970-01-01T00:00:05.000001Z to=1970-01-01T00:00:09.000000Z",
    );
    expect(formatAnnouncedRanges([{ from: 0, to: 1, state: "lost", reason: 'a "b" ä' }])).toContain(
      'reason="a _b_ _"',
    );
    expect(formatAnnouncedRanges([])).toBeUndefined();
    expect(parse({ ...serve, "x-mds-window": "2022-01-01T00:00:00.000000Z" })).toEqual({
      windowStart: Date.UTC(2022) * 1000,
      ranges: [],
    });
  });

  it("is believed only from mds-sync serve", () => {
    expect(parse({ server: "nginx", "x-mds-window": "2022-01-01T00:00:00Z" })).toBeUndefined();
    expect(parse({})).toBeUndefined();
  });

  it("proves nothing if it cannot be read", () => {
    for (const text of [
      "open",
      "open from=a to=b",
      "new from=1970-01-01T00:00:00Z to=1970-01-02T00:00:00Z",
      "x",
      `${hour}, x`,
      `x ${hour}`,
      // A state of a later version, before one that this version knows.
      `${hour.replace("open", "new")}, ${hour.replace("open", "empty")}`,
      "open from=1970-01-01T01:00:00Z to=1970-01-01T01:00:00Z",
      "open from=1970-01-01T02:00:00Z to=1970-01-01T01:00:00Z",
      "open from=1970-01-01T01:00:00Z to=b",
      "open from=a to=1970-01-01T01:00:00Z",
    ])
      expect(parse({ ...serve, "x-mds-coverage": text })?.ranges, text).toEqual([
        { from: 0, to: Number.MAX_SAFE_INTEGER, state: "open", reason: null },
      ]);
    expect(parse(serve)).toEqual({ windowStart: undefined, ranges: [] });
  });
});
