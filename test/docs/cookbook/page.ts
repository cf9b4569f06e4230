import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseBlocks } from "../page-blocks.ts";

export const cookbookFile = resolve(import.meta.dirname, "../../../docs/cookbook.md");

interface Question {
  readonly title: string;
  readonly sqlite: string;
  readonly duckdb: string;
  readonly python: string;
  /** The answer of both engines, as `mds-sync query` prints it; empty if the page has none. */
  readonly answer: string;
}

export function readCookbook(): string {
  return readFileSync(cookbookFile, "utf8");
}

/** Parses the questions of the page, each with its SQL and its answer. */
export function parseQuestions(page: string): Question[] {
  const sections = page.split(/^## /m).filter((section) => /^\d+\. /.test(section));
  return sections.map((section) => {
    const [title = ""] = section.split("\n");
    const blocks = parseBlocks(section);
    const findOnly = (language: string, beginning: RegExp) => {
      const own = blocks.filter((block) => block.language === language && beginning.test(block.code));
      if (own.length !== 1) throw new Error(`"${title}" has ${own.length} blocks for ${beginning}, not one`);
      return own[0]?.code ?? "";
    };
    if (blocks.some(({ language, code }) => language === "sql" && !/^-- (SQLite|DuckDB)/.test(code)))
      throw new Error(`"${title}" has SQL that does not name its engine`);
    return {
      title,
      sqlite: findOnly("sql", /^.*SQLite/),
      duckdb: findOnly("sql", /^.*DuckDB/),
      python: findOnly("python", /^/),
      answer: blocks.find(({ output }) => output !== undefined)?.output ?? "",
    };
  });
}

/** What comes before every block of Python. */
export const parsePreamble = (page: string): string =>
  parseBlocks(page).find(({ language }) => language === "python")?.code ?? "";

/** The same SQL or Python at another present: answers must not change from day to day. */
export function setPresent(code: string, nowMs: number): string {
  const time = new Date(nowMs).toISOString();
  return code
    .replaceAll("'now'", `'${time}'`)
    .replaceAll("current_date", `DATE '${time.slice(0, 10)}'`)
    .replaceAll("now()", `TIMESTAMPTZ '${time}'`)
    .replaceAll('pd.Timestamp.now("UTC")', `pd.Timestamp("${time}")`);
}
