// Statements as texts: those of the cookbook, their parameters, and programs that ask the same. Pure functions without access to the page.

import { parseQueryValue } from "../../../model/answers/query.ts";
import { MICROS_PER_MS } from "../../../model/time.ts";

/** The questions of docs/cookbook.md as starting points. */
export function parseCookbook(markdown: string): { readonly title: string; readonly sql: string }[] {
  return markdown
    .split(/^## (?=\d+\. )/m)
    .slice(1)
    .flatMap((section) => {
      const title = section.slice(0, section.indexOf("\n")).trim();
      const sql = /^```sql\n-- SQLite[^\n]*\n(.*?)^```/ms.exec(section)?.[1];
      return sql === undefined ? [] : [{ title, sql: sql.trim() }];
    });
}

/** The names of the parameters of a statement, such as `from` of `:from`, without those in texts and comments. */
export function findParameters(sql: string): string[] {
  const bare = sql.replaceAll(/'[^']*(?:'|$)|"[^"]*(?:"|$)|--[^\n]*|\/\*.*?(?:\*\/|$)/gs, " ");
  return [...new Set([...bare.matchAll(/(?<![:\w]):([a-z_]\w*)/gi)].map(([, name = ""]) => name))];
}

interface Statement {
  readonly sql: string;
  /** By name, as `/api/query` takes them: a number, `@TIME`, or text. */
  readonly params: Readonly<Record<string, string>>;
  readonly origin: string;
  /** The path of the warehouse; empty: unknown. */
  readonly warehouse: string;
}

/** A quote ends the text only after two others, or at its end. */
const pythonText = (text: string) => `"""${text.replaceAll("\\", "\\\\").replaceAll(/"(?="|$)/g, '\\"')}"""`;
const scriptText = (text: string) => `\`${text.replaceAll(/[\\`$]/g, "\\$&")}\``;

/** `suffix`: of whole numbers that the language would else round. */
const literals = (params: Statement["params"], suffix = "") =>
  Object.entries(params)
    .map(([name, text]) => {
      const value = parseQueryValue(text.trim(), Date.now() * MICROS_PER_MS) ?? text;
      const literal = typeof value === "bigint" ? `${value}${suffix}` : JSON.stringify(value);
      return `${JSON.stringify(name)}: ${literal}`;
    })
    .join(", ");

export const languages = {
  Python: ({ sql, params, warehouse }: Statement) => {
    const more = Object.keys(params).length > 0 ? `, {${literals(params)}}` : "";
    return `import mds\n\nw = mds.open(${JSON.stringify(warehouse)})\nprint(w.sql(${pythonText(sql)}${more}))\n`;
  },
  TypeScript: ({ sql, params, warehouse }: Statement) => {
    const more = Object.keys(params).length > 0 ? `, { ${literals(params, "n")} }` : "";
    return `import { openWarehouse } from "mds-sync";\n\nusing warehouse = openWarehouse(${JSON.stringify(warehouse)});\nconsole.table(warehouse.query(${scriptText(sql)}${more}));\n`;
  },
  curl: ({ sql, params, origin }: Statement) => {
    const body = JSON.stringify({ sql, params, format: "csv" }).replaceAll("'", `'\\''`);
    return `curl -s '${origin}/api/query' -H 'origin: ${origin}' -H 'content-type: application/json' -d '${body}'\n`;
  },
} as const;
