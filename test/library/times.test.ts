import { describe, expect, it } from "vitest";
import { readParameters } from "../../src/cli/commands/query.ts";
import { readTimestamp } from "../../src/cli/support/selection-flags.ts";
import { parseBarsQuery } from "../../src/dashboard/query-params.ts";
import { parseQueryRequest } from "../../src/export/query/query-request.ts";
import { readQueryValues, readTime } from "../../src/library/reading/read-plan.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros, USER_TIME_FORMS } from "../../src/model/time.ts";
import { parseReplayOptions } from "../../src/serve/live/replay.ts";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";
import { parseTs } from "../support/warehouse/records.ts";

const now = parseTs("2026-11-18T12:00:00Z");

/** What users type, and the moment in UTC; undefined: not a time. */
const cases: Readonly<Record<string, string | undefined>> = {
  now: "2026-11-18T12:00:00.000000Z",
  "now-7d": "2026-11-11T12:00:00.000000Z",
  "-7d": "2026-11-11T12:00:00.000000Z",
  "-90m": "2026-11-18T10:30:00.000000Z",
  "-1w": "2026-11-11T12:00:00.000000Z",
  "-30s": "2026-11-18T11:59:30.000000Z",
  "2026-11-17": "2026-11-17T00:00:00.000000Z",
  "2024-02-29": "2024-02-29T00:00:00.000000Z",
  "2026-11-17 12:00": "2026-11-17T12:00:00.000000Z",
  "2026-11-17 12:00:04": "2026-11-17T12:00:04.000000Z",
  "2026-11-17 12:00:04.999": "2026-11-17T12:00:04.999000Z",
  "2026-11-17 12:00:04.9999999": "2026-11-17T12:00:04.999999Z",
  "2026-11-17T12:00": "2026-11-17T12:00:00.000000Z",
  "2026-11-17T12:00:04": "2026-11-17T12:00:04.000000Z",
  "2026-11-17T12:00:04Z": "2026-11-17T12:00:04.000000Z",
  "2026-11-17t12:00:04.5z": "2026-11-17T12:00:04.500000Z",
  "2026-11-17T12:00:04+00:00": "2026-11-17T12:00:04.000000Z",
  "2026-11-17T09:30:00-05:00": "2026-11-17T14:30:00.000000Z",
  "2026-11-17T09:30:00.000001-0500": "2026-11-17T14:30:00.000001Z",
  "2026-11-17 01:00+05:45": "2026-11-16T19:15:00.000000Z",
  "2026-11-17T01:00:00+01": "2026-11-17T00:00:00.000000Z",
  "2026-11-17T24:00:00Z": "2026-11-18T00:00:00.000000Z",
  "2016-12-31T23:59:60Z": "2016-12-31T23:59:59.999999Z",
  ...Object.fromEntries(
    ["", " ", "yesterday", "2026", "2026-11", "2026-02-29", "2026-13-01", "20261117", "17.11.2026"]
      .concat("7d", "-7", "-7y", "- 7d", "-7d ", "now+1h")
      .concat("2026-11-17 12", "2026-11-17 25:00", "2026-11-17 12:60")
      .concat("2026-11-17T12:00:00.", "2026-11-17T12:00:00+25:00", "2026-11-17T12:00:00+01:60", "2026-11-17Z")
      .concat("2026-11-17T12:00:00 CET", "2026-11-17T12:00:00.5.5Z", "2026-11-17T12:00:61Z", "x2026-11-17")
      .map((text) => [text, undefined]),
  ),
};

/** Everything that reads a time from a user, in TypeScript. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  "a flag": (text) => readTimestamp("--from", text, { now: () => now / 1000 }),
  "the library": (text) => readTime(text, now),
  "--param": (text) => readParameters([`at=@${text}`], now).at,
  "a query of the library": (text) => readQueryValues({ at: `@${text}` }, now).at,
  "/explore": (text) =>
    parseQueryRequest(JSON.stringify({ sql: "SELECT 1", params: { at: `@${text}` } }), now).parameters.at,
  "a page": (text) => {
    const parsed = parseBarsQuery(
      new URLSearchParams({ type: "GWA", id: "x", width: "1m", from: text, to: text }),
      now,
    );
    // The bar that contains the moment: whether the text was understood is all that it tells.
    if (typeof parsed === "string" && parsed.startsWith("from and to must be")) throw new Error(parsed);
    return undefined;
  },
  "a replay": (text) =>
    parseReplayOptions(new URLSearchParams({ from: text, to: "2250-01-01" }), () => now)?.from,
};

const inPython = `
import json, sys
from mds.times import to_micros
def read(text):
    try:
        return to_micros(text, int(sys.argv[1]))
    except ValueError:
        return None
print(json.dumps([read(text) for text in json.loads(sys.argv[2])]))
`;

const understood = (read: () => unknown): string | undefined => {
  try {
    const found = read();
    return found === undefined ? "understood" : formatTimestamp(Number(found));
  } catch (error) {
    expect(String(error)).not.toMatch(/TypeError|RangeError/);
    return undefined;
  }
};

describe("a time that a user types", () => {
  it.each(Object.keys(readers))("means the same to %s", (reader) => {
    for (const [text, time] of Object.entries(cases)) {
      // What a page and a query leave out are blanks around the text.
      if (reader === "/explore" && text !== text.trim()) continue;
      const found = understood(() => readers[reader]?.(text));
      expect({ text, time: found === "understood" ? time : found }).toEqual({ text, time });
    }
  });

  it("means the same to Python", () => {
    if (!hasModules("pandas", "times in Python")) return;
    const args = [String(now), JSON.stringify(Object.keys(cases))];
    const found = JSON.parse(runPython(inPython, args)) as (Micros | null)[];
    const times = Object.keys(cases).map((text, at) => [
      text,
      found[at] === null ? undefined : formatTimestamp(found[at] ?? 0),
    ]);
    expect(Object.fromEntries(times)).toEqual(cases);
  });

  it("is told by the remedies", () => {
    for (const example of ["2026-03-01 12:00", "2026-03-01T07:00:00.5-05:00", "now", "-7d", "-90m"]) {
      expect(USER_TIME_FORMS).toContain(example);
      expect(readTime(example, now)).toBeGreaterThan(MICROS_PER_SECOND);
    }
  });
});
