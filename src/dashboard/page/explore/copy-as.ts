// The statement as a program that asks the same. Pure functions without access to the page.

import { MICROS_PER_MS, parseUserTime } from "../../../model/time.ts";

interface Statement {
  readonly sql: string;
  /** By name, as `/api/query` takes them: a number, `@TIME`, or text. */
  readonly params: Readonly<Record<string, string>>;
  readonly origin: string;
  /** The path of the warehouse; empty: unknown. */
  readonly warehouse: string;
}

const pythonText = (text: string) => `"""${text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"')}"""`;
const scriptText = (text: string) => `\`${text.replaceAll(/[\\`$]/g, "\\$&")}\``;

/** A time as microseconds; other values as they are. */
function toLiteral(value: string, suffix: string): string {
  const ts = value.startsWith("@") ? parseUserTime(value.slice(1), Date.now() * MICROS_PER_MS) : undefined;
  if (ts !== undefined) return `${ts}${suffix}`;
  return value !== "" && !Number.isNaN(Number(value)) ? value : JSON.stringify(value);
}

/** `suffix`: of whole numbers that the language would else round. */
const literals = (params: Statement["params"], suffix = "") =>
  Object.entries(params)
    .map(([name, value]) => `${JSON.stringify(name)}: ${toLiteral(value, suffix)}`)
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
