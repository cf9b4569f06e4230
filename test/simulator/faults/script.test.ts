import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeFaults, faultDefinitions } from "../../../src/simulator/faults/catalogue.ts";
import { FaultScript } from "../../../src/simulator/faults/script.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const script = (text: string, seed = 1, clock = new ManualClock()) => new FaultScript(text, { seed, clock });
const createEvent = (path: string, query: Record<string, string> = {}) => ({
  kind: "request" as const,
  method: "GET",
  path,
  query: new Map(Object.entries(query)),
});
const countTriggered = (subject: FaultScript, path: string, query?: Record<string, string>) =>
  subject.triggeredFaults(createEvent(path, query)).length;

describe("a fault script", () => {
  it.each([
    ["GET /asset statis 503", 'line 1: unknown fault "statis"; did you mean "status"?'],
    [
      "\n# fine\nGET /asset status 503 tims=3",
      'line 3: unknown parameter of status "tims"; did you mean "times"?',
    ],
    ["FETCH /asset status 503", 'line 1: unknown method "FETCH"'],
    ["GET asset status 503", 'line 1: a path starts with "/" or is "*", not "asset"'],
    ["GET /asset", "line 1: the name of the fault is missing"],
    ["GET /asset status", "line 1: status needs code=…"],
    ["GET /asset status often", 'line 1: code is a number, not "often"'],
    ["GET /asset latency 5", 'line 1: by is a duration such as 500ms, 7s, 5m or 1h, not "5"'],
    ["GET /asset cut sideways", 'line 1: unknown value of how "sideways"'],
    ["GET /asset html p=2", "line 1: p is a probability between 0 and 1, not 2"],
    ["GET /asset html page=second", 'line 1: unknown value of page "second"'],
    ["GET /asset html query=LX", "line 1: query=NAME=VALUE, not query=LX"],
    ["GET /asset html p=0.1 p=0.2", "line 1: p is given twice"],
    [
      "GET /asset drop price rows=some",
      'line 1: rows is all, first, last or a share such as 0.1, not "some"',
    ],
    ["GET /asset half-open", 'line 1: unknown fault "half-open"'],
    ["ws cut", 'line 1: unknown fault "cut"'],
    ['GET /asset set price "broken', 'line 1: cannot read "broken'],
  ])("rejects %j and suggests a correction", (text, message) => {
    expect(() => script(text)).toThrow(message);
  });

  it("reads comments, blank lines, quoted values and positional values", () => {
    const subject = script('# nothing\n\nGET /asset set name "a # \\"b\\"" rows=first # why\n  GET * html');
    expect(subject.counts.map(({ line }) => line)).toEqual([3, 4]);
    expect(subject.linesFor("request")[0]?.textOf("value")).toBe('a # "b"');
  });

  it("triggers only on matching paths, wildcards, queries and pages", () => {
    const text = "GET /asset html\nGET /asset/* html\nGET * html query=indexType=LX\nGET * html page=later";
    expect(
      script(text)
        .triggeredFaults(createEvent("/asset"))
        .map(({ line }) => line.lineNumber),
    ).toEqual([1]);
    expect(
      script(text)
        .triggeredFaults(createEvent("/asset/7"))
        .map(({ line }) => line.lineNumber),
    ).toEqual([2]);
    expect(
      script(text)
        .triggeredFaults(createEvent("/ohlcv", { indexType: "LX" }))
        .map(({ line }) => line.lineNumber),
    ).toEqual([3]);
    expect(
      script(text)
        .triggeredFaults(createEvent("/ohlcv", { startAfter: "x" }))
        .map(({ line }) => line.lineNumber),
    ).toEqual([4]);
  });

  it("counts times and after per identical request, and total per line", () => {
    const subject = script("GET /a html times=2\nGET /b html after=1 times=1\nGET /c html total=1");
    const count = (path: string, query?: Record<string, string>) =>
      [1, 2, 3].map(() => countTriggered(subject, path, query)).join("");
    expect(count("/a")).toBe("110");
    expect(count("/a", { page: "2" })).toBe("110");
    expect(count("/b")).toBe("010");
    expect(count("/c")).toBe("100");
    expect(count("/c", { page: "2" })).toBe("000");
    expect(subject.counts.map(({ struck: triggered }) => triggered)).toEqual([4, 1, 1]);
  });

  it("triggers between from and to, measured since the script was set", async () => {
    const clock = new ManualClock();
    const subject = script("GET * html from=60s to=2m", 1, clock);
    const seen: number[] = [];
    for (let second = 0; second < 150; second += 30) {
      seen.push(countTriggered(subject, "/a"));
      await clock.advance(30_000);
    }
    expect(seen).toEqual([0, 0, 1, 1, 0]);
  });

  it("triggers with about the probability p", () => {
    const subject = script("GET * html p=0.05");
    let triggered = 0;
    for (let at = 0; at < 4000; at++) triggered += countTriggered(subject, "/a", { at: String(at) });
    expect(triggered).toBeGreaterThan(140);
    expect(triggered).toBeLessThan(260);
  });

  it("makes the same decision per request in any order of requests", () => {
    const text = "GET * html p=0.4\nGET /b cut times=2\nGET * bom p=0.7 after=1";
    const requests = fc.array(
      fc.record({ path: fc.constantFrom("/a", "/b"), page: fc.integer({ min: 0, max: 4 }) }),
    );
    const decisions = (order: { path: string; page: number }[], seed: number) => {
      const subject = script(text, seed);
      const seen: Record<string, number[][]> = {};
      for (const { path, page } of order) {
        const lineNumbers = subject
          .triggeredFaults(createEvent(path, { page: String(page) }))
          .map(({ line }) => line.lineNumber);
        const list = seen[`${path} ${page}`] ?? [];
        seen[`${path} ${page}`] = [...list, lineNumbers];
      }
      return seen;
    };
    fc.assert(
      fc.property(
        requests.chain((list) =>
          fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
        ),
        fc.integer(),
        ([order, other], seed) => {
          expect(decisions(other, seed)).toEqual(decisions(order, seed));
        },
      ),
    );
  });

  it("makes other decisions with another seed", () => {
    const decisionsOf = (seed: number) => {
      const subject = script("GET * html p=0.5", seed);
      return Array.from({ length: 64 }, (_, at) => countTriggered(subject, "/a", { at: String(at) })).join(
        "",
      );
    };
    expect(decisionsOf(1)).toBe(decisionsOf(1));
    expect(decisionsOf(1)).not.toBe(decisionsOf(2));
  });

  it("describes every fault in one line", () => {
    const help = describeFaults();
    for (const { name: word, description: does, parameters } of faultDefinitions) {
      expect(help).toContain(`${word}`);
      for (const { kind } of Object.values(parameters))
        expect(["number", "duration", "text", "choice", "rows"]).toContain(kind);
      expect(does.length).toBeGreaterThan(10);
      expect(does.length).toBeLessThan(160);
    }
    expect(new Set(faultDefinitions.map(({ name: word }) => word)).size).toBe(faultDefinitions.length);
  });
});
