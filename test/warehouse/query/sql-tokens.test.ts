import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseQueryRequest } from "../../../src/export/query/query-request.ts";
import { readSqlTokens } from "../../../src/warehouse/query/sql-tokens.ts";

const closers: Readonly<Record<string, string>> = { "'": "'", '"': '"', "`": "`", "[": "]" };

/** What each character belongs to, by looking at one after the other: `.` a comment or blank, `q` quotes, `x` anything else. */
function mark(sql: string): string {
  let marks = "";
  while (marks.length < sql.length) {
    const at = marks.length;
    const [one = "", two = ""] = [sql[at], sql.slice(at, at + 2)];
    const closer = closers[one];
    let end = at + 1;
    if (two === "--") while (end < sql.length && sql[end] !== "\n") end++;
    else if (two === "/*") {
      for (end = at + 2; end < sql.length && sql.slice(end, end + 2) !== "*/"; ) end++;
      end = Math.min(sql.length, end + 2);
    } else if (closer !== undefined) {
      const isDoubled = () => one !== "[" && sql[end + 1] === closer;
      for (; end < sql.length && (sql[end] !== closer || isDoubled()); end += sql[end] === closer ? 2 : 1);
      end = Math.min(sql.length, end + 1);
    }
    const isSkipped = two === "--" || two === "/*" || one.trim() === "";
    marks += (isSkipped ? "." : closer === undefined ? "x" : "q").repeat(end - at);
  }
  return marks;
}

const pieces = ["/*", "*/", "--", "\n", " ", "'", '"', "`", "[", "]", "/", "*", "-", "\\", ";", "="];
const words = ["select", "WITH", "pragma", "x", "1", ":a"];
const statements = fc
  .array(fc.constantFrom(...pieces, ...words), { maxLength: 40 })
  .map((all) => all.join(""));

describe("the tokens of a statement", () => {
  it("are what is outside of comments, whatever is nested, quoted or not closed", () => {
    fc.assert(
      fc.property(statements, (sql) => {
        const marks = [..."".padEnd(sql.length, ".")];
        for (const { kind, from, to } of readSqlTokens(sql))
          marks.fill(kind === "text" || kind === "name" ? "q" : "x", from, to);
        expect([sql, marks.join("")]).toEqual([sql, mark(sql)]);
      }),
      { numRuns: 500 },
    );
  });

  it("decide whether a page may ask: the first word outside of comments", () => {
    const ask = (sql: string) => parseQueryRequest(JSON.stringify({ sql }), 0);
    fc.assert(
      fc.property(statements, (sql) => {
        const first = mark(sql).search(/[^.]/);
        const isReading = first >= 0 && /^(?:select|with)(?!\w)/i.test(sql.slice(first));
        if (isReading) expect(ask(sql).sql).toBe(sql);
        else expect(() => ask(sql)).toThrow(/there is no SQL|only statements that read/);
      }),
      { numRuns: 500 },
    );
  });

  // Twice the time for each comment would never end; a square of a million steps not within the time of a test.
  it.each([
    ...(["/**/", "--\n"] as const).map((piece) => [100_000, piece] as const),
    ...(["/* ", "'", '"', "`", "[", " "] as const).map((piece) => [1_000_000, piece] as const),
  ])("end after %i × %j", (times, piece) => {
    const sql = `${piece.repeat(times)}x`;
    expect([...readSqlTokens(sql)].length).toBeLessThanOrEqual(2);
    expect(() => parseQueryRequest(JSON.stringify({ sql: sql.slice(-49_997) }), 0)).toThrow("that read");
    expect(parseQueryRequest(JSON.stringify({ sql: `SELECT ${sql.slice(-49_990)}` }), 0).format).toBe("rows");
  });
});
