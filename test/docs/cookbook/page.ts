import { readFileSync } from "node:fs";
import { resolve } from "node:path";

export const cookbookFile = resolve(import.meta.dirname, "../../../docs/cookbook.md");

interface Question {
  readonly title: string;
  readonly sqlite: string;
  readonly duckdb: string;
  readonly python: string;
  /** The answer of both engines, as `mds-sync query` prints it; empty if the page has none. */
  readonly answer: string;
}

const heading = /^## /m;
const isQuestion = (section: string) => /^\d+\. /.test(section);
const fenced = /```(sql|python|text)\n(.*?)```\n/gs;

export function readCookbook(): string {
  return readFileSync(cookbookFile, "utf8");
}

/** Parses the questions of the page, each with its SQL and its answer. */
export function parseQuestions(page: string): Question[] {
  return page
    .split(heading)
    .filter(isQuestion)
    .map((section) => {
      const title = section.slice(0, section.indexOf("\n"));
      const blocks = [...section.matchAll(fenced)].map(([, kind = "", body = ""]) => ({ kind, body }));
      const sqlFor = (engine: string) => {
        const own = blocks.filter(
          ({ kind, body }) => kind === "sql" && (body.split("\n")[0] ?? "").includes(engine),
        );
        if (own.length !== 1) throw new Error(`"${title}" has ${own.length} blocks for ${engine}, not one`);
        return own[0]?.body ?? "";
      };
      const unlabelled = blocks.filter(
        ({ kind, body }) => kind === "sql" && !/^-- (SQLite|DuckDB)/.test(body),
      );
      if (unlabelled.length > 0) throw new Error(`"${title}" has SQL that does not name its engine`);
      const [python = "", ...more] = blocks.filter(({ kind }) => kind === "python").map(({ body }) => body);
      if (python === "" || more.length > 0) throw new Error(`"${title}" needs one block of Python`);
      const answer = blocks.find(({ kind }) => kind === "text")?.body ?? "";
      return { title, sqlite: sqlFor("SQLite"), duckdb: sqlFor("DuckDB"), python, answer };
    });
}

/** What comes before every block of Python. */
export function parsePreamble(page: string): string {
  return /^```python\n(.*?)^```/ms.exec(page)?.[1] ?? "";
}

/** The same SQL or Python at another present: answers must not change from day to day. */
export function setPresent(code: string, nowMs: number): string {
  const time = new Date(nowMs).toISOString();
  return code
    .replaceAll("'now'", `'${time}'`)
    .replaceAll("current_date", `DATE '${time.slice(0, 10)}'`)
    .replaceAll("now()", `TIMESTAMPTZ '${time}'`)
    .replaceAll('pd.Timestamp.now("UTC")', `pd.Timestamp("${time}")`);
}
