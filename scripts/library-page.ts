import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse } from "@babel/parser";

const root = resolve(import.meta.dirname, "..");
export const libraryFile = resolve(root, "docs/library.md");

/** The files that declare what a user of the library sees. */
const sources = {
  entry: "src/library/open-warehouse.ts",
  options: "src/library/read-options.ts",
  rows: "src/library/rows.ts",
  gaps: "src/model/status/gap-state.ts",
  arrow: "src/library/arrow.ts",
  failures: "src/library/incomplete-failure.ts",
} as const;

/** A declaration with its comment. */
interface Declared {
  readonly name: string;
  readonly doc: string;
  /** One line of TypeScript; several for an overloaded method. */
  readonly signatures: readonly string[];
  readonly members: readonly { readonly name: string; readonly type: string; readonly doc: string }[];
}

/** A parsed node: what it says stands in the text between `start` and `end`. */
type Statement = ReturnType<typeof parse>["program"]["body"][number];
type Declaration = NonNullable<Extract<Statement, { type: "ExportNamedDeclaration" }>["declaration"]>;
type ClassMember = Extract<Declaration, { type: "ClassDeclaration" }>["body"]["body"][number];
type Method = Extract<ClassMember, { type: "ClassMethod" | "TSDeclareMethod" }>;
type Signature = Method | Extract<Declaration, { type: "FunctionDeclaration" }>;
type Span = Pick<Statement, "start" | "end">;

/** The declarations of one file, read from its text. */
class SourceFile {
  readonly #text: string;
  readonly #statements: readonly Statement[];

  constructor(path: string) {
    this.#text = readFileSync(resolve(root, path), "utf8");
    this.#statements = parse(this.#text, { sourceType: "module", plugins: ["typescript"] }).program.body;
  }

  exported(): Declared[] {
    return this.#statements.flatMap((statement) => {
      if (statement.type !== "ExportNamedDeclaration" || !statement.declaration) return [];
      const declared = this.#declared(statement.declaration, this.#docOf(statement));
      return declared ? [declared] : [];
    });
  }

  #declared(node: Declaration, doc: string): Declared | undefined {
    switch (node.type) {
      case "TSInterfaceDeclaration": {
        const { name } = node.id;
        const parents = (node.extends ?? []).map((parent) => this.#oneLine(parent)).join(", ");
        const members = node.body.body.flatMap((member) =>
          member.type === "TSPropertySignature"
            ? [
                {
                  name: `${this.#oneLine(member.key)}${member.optional ? "?" : ""}`,
                  type: this.#typeText(member.typeAnnotation?.typeAnnotation),
                  doc: this.#docOf(member),
                },
              ]
            : [],
        );
        return {
          name,
          doc,
          signatures: parents === "" ? [] : [`interface ${name} extends ${parents}`],
          members,
        };
      }
      case "TSTypeAliasDeclaration": {
        const { name } = node.id;
        return {
          name,
          doc,
          signatures: [`type ${name} = ${this.#typeText(node.typeAnnotation)}`],
          members: [],
        };
      }
      case "FunctionDeclaration": {
        const name = node.id?.name ?? "default";
        return { name, doc, signatures: [this.#signatureOf(node, name)], members: [] };
      }
      default:
        return undefined;
    }
  }

  /** The public methods of the class, overloads together, without the implementation of an overloaded one. */
  methodsOf(className: string): Declared[] {
    const methods = this.#statements
      .flatMap((statement) =>
        statement.type === "ExportNamedDeclaration" ? (statement.declaration ?? []) : statement,
      )
      .flatMap((node) =>
        node.type === "ClassDeclaration" && node.id?.name === className ? node.body.body : [],
      )
      .filter(
        (member): member is Method => member.type === "ClassMethod" || member.type === "TSDeclareMethod",
      )
      .filter(({ key, computed, kind, static: isStatic }) => {
        return key.type === "Identifier" && !computed && kind === "method" && !isStatic;
      });
    return [...Map.groupBy(methods, (method) => this.#oneLine(method.key))].map(([name, all]) => {
      const shown = all.length > 1 ? all.filter(({ type }) => type === "TSDeclareMethod") : all;
      const doc = all.map((method) => this.#docOf(method)).find((text) => text !== "") ?? "";
      return { name, doc, signatures: shown.map((method) => this.#signatureOf(method, name)), members: [] };
    });
  }

  #signatureOf(node: Signature, name: string): string {
    const types = node.typeParameters ? this.#oneLine(node.typeParameters) : "";
    const result = node.returnType ? this.#oneLine(node.returnType) : "";
    return `${name}${types}(${node.params.map((param) => this.#oneLine(param)).join(", ")})${result}`;
  }

  #docOf({ leadingComments }: Pick<Statement, "leadingComments">): string {
    const doc = leadingComments?.findLast(
      ({ type, value }) => type === "CommentBlock" && value.startsWith("*"),
    );
    return (doc?.value.slice(1) ?? "")
      .replaceAll(/^\s*\* ?/gm, "")
      .replaceAll(/\s+/g, " ")
      .trim();
  }

  #oneLine({ start, end }: Span): string {
    return this.#text.slice(start ?? 0, end ?? 0).replaceAll(/\s+/g, " ");
  }

  /** Without `readonly`, which every member has. */
  #typeText(node: Span | undefined): string {
    return node ? this.#oneLine(node).replaceAll("readonly ", "") : "";
  }
}

const declaredIn = (path: string) => new SourceFile(path).exported();
const methodsOf = (className: string) => new SourceFile(sources.entry).methodsOf(className);

const opening = `# The libraries

TypeScript and Python open the same file read-only. Each call reads one state of the warehouse, also while a daemon writes it.
The [research page](research.md) has examples with their output, [examples](../examples/README.md) projects to copy.

| | TypeScript | Python |
|---|---|---|
| needs | Node 22.12; types are included | Python 3.9, pandas |
| install, in a clone after \`npm ci\` | below | \`pip install ./clients/python\`, or [without pip](../clients/python/README.md) |
| open | \`using warehouse = openWarehouse("data/mds.sqlite")\` | \`w = mds.open("data/mds.sqlite")\`; also an export or PostgreSQL |
| list the series | \`warehouse.series()\` | \`w.series()\` |
| bars of any length | \`warehouse.bars("BTC", { every: "1h", from, to })\` | \`w.bars("BTC", "1h", start, end)\` |
| ticks | \`warehouse.ticks("BTC", { from, to })\` | \`w.ticks("BTC", start, end)\` |
| ticks in constant memory | \`warehouse.iterTicks("BTC", { from, to })\` | \`w.iter_ticks("BTC", start, end)\` |
| the service's daily bars | \`bars\` with \`source: "ohlcv"\` | \`w.ohlcv("BTC", start, end)\` |
| last price at a moment | \`warehouse.asOf(at, ["BTC", "ETH"])\` | \`w.asof(at, ["BTC", "ETH"])\` |
| one price a day | \`warehouse.asOf({ at: "09:30", from, to }, "BTC", { tz })\` | \`w.asof(series="BTC", at="09:30", start=…, end=…, tz=…)\` |
| prices for trades of your own | \`warehouse.asOfJoin(trades, { on: "time", by: "name" })\` | \`w.asof_join(trades, on="time", by="name")\` |
| returns | from \`bars\` | \`w.returns("BTC", "1h", start, end)\` |
| is a range complete? | \`warehouse.isWhole("BTC", { from, to })\` | \`w.is_whole("BTC", start, end)\` |
| what is missing? | \`warehouse.gaps({ series: "BTC", from, to })\` | \`w.missing("BTC", start, end)\` |
| refuse incomplete ranges | \`requireComplete: true\` throws \`IncompleteFailure\` | \`require_complete=True\` raises \`mds.Incomplete\` |
| an earlier state | \`knownAt\`, \`warehouse.cite()\` | \`known_at\`, \`w.cite()\` |
| a line that others can check | \`warehouse.cite("bars", "BTC", { every: "1h" })\`, \`warehouse.check(line)\` | \`w.cite("bars", "BTC", "1h")\`, \`w.check(line)\` |
| SQL | \`warehouse.query(sql, { name }, { knownAt })\` | \`w.sql(sql, {"name": …}, known_at=…)\` |
| columns | \`as: "columns"\`: typed arrays; \`toArrow\` | DataFrames; \`frames="polars"\` |

\`\`\`sh
npm pack && clone=$PWD                         # in a clone, after \`npm ci\`: mds-sync-VERSION.tgz
mkdir -p ../my-project && cd ../my-project
npm install "$clone"/mds-sync-*.tgz
\`\`\`

\`\`\`ts
import { openWarehouse } from "mds-sync";

using warehouse = openWarehouse("data/mds.sqlite");
const bars = warehouse.bars(["BTC", "ETH"], { every: "1h", from: "now-7d", requireComplete: true });
const [ticks] = warehouse.ticks("BTC", { from: "2026-05-01", as: "columns" });
const average = ticks.price.reduce((sum, price) => sum + price, 0) / ticks.length;
\`\`\`

- **Ranges** are \`[from, to)\`; a bar belongs to a range if it begins in it. [Times](commands.md#times) and [the starts of bars](dictionary.md#grids) are those of
  the commands.
- **Rows**, also those of \`mds-sync bars\`, \`ticks\` and \`asof\`, have the columns of the [views](dictionary.md).
- **Failures:** \`Failure\` has a \`code\` that is stable across releases, a \`message\` and a \`remedy\`. \`IncompleteFailure\` lists the \`gaps\`.
- **More:** [the Python client](../clients/python/README.md) in detail; \`mds-sync/schema\` exports the tables for typed queries with
  [drizzle](https://orm.drizzle.team).

## TypeScript reference

Generated by \`npm run docs\` from the declarations in \`src/library/\`.`;

export function libraryPage(): string {
  const parts: [string, Declared[]][] = [
    ["Functions", [...declaredIn(sources.entry), ...declaredIn(sources.arrow)]],
    ["Warehouse", methodsOf("Warehouse")],
    ["Options", declaredIn(sources.options)],
    [
      "Rows",
      [...declaredIn(sources.rows), ...declaredIn(sources.gaps).filter(({ name }) => name === "GapRow")],
    ],
  ];
  const sections = parts.map(
    ([title, all]) => `### ${title}\n\n\`\`\`ts\n${all.map(declaration).join("\n\n")}\n\`\`\``,
  );
  return `${[opening, ...sections].join("\n\n")}\n`;
}

const MAX_WIDTH = 120;

/** A declaration as in a file of types, under its comment. */
function declaration({ name, doc, signatures, members }: Declared): string {
  const first = signatures.length === 0 ? [`interface ${name}`] : signatures;
  const comment = wrap(withoutLinks(doc)).map((line) => `// ${line}`);
  // The dictionary has the columns of a view.
  if (/\bof the views? `/.test(doc)) return [...comment, `${first.join("\n")} { … }`].join("\n");
  if (members.length === 0) return [...comment, ...first].join("\n");
  return [...comment, `${first.join("\n")} {`, ...memberLines(members), "}"].join("\n");
}

/** Members without a comment share lines. */
function memberLines(members: Declared["members"]): string[] {
  const lines: string[] = [];
  let isOpen = false;
  for (const { name, type, doc } of members) {
    const text = `${name}: ${type};`;
    const last = lines.at(-1) ?? "";
    if (doc === "" && isOpen && last.length + text.length < MAX_WIDTH)
      lines[lines.length - 1] = `${last} ${text}`;
    else {
      const line = `  ${text}${doc === "" ? "" : `  // ${withoutLinks(doc)}`}`;
      const isLong = line.length > MAX_WIDTH;
      lines.push(
        ...(isLong ? [...wrap(withoutLinks(doc)).map((each) => `  // ${each}`), `  ${text}`] : [line]),
      );
    }
    isOpen = doc === "";
  }
  return lines;
}

function wrap(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ").filter((each) => each !== "")) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trimStart();
    if (lines.length > 0 && longer.length < MAX_WIDTH) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Inside a block a link would be its source. */
const withoutLinks = (text: string) => text.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1");

/** Declarations without a comment, for the test. */
export function findUndocumented(): string[] {
  return [
    ...declaredIn(sources.entry),
    ...declaredIn(sources.arrow),
    ...methodsOf("Warehouse"),
    ...declaredIn(sources.options),
    ...declaredIn(sources.rows),
  ]
    .filter(({ doc }) => doc === "")
    .map(({ name }) => name);
}

if (import.meta.main) writeFileSync(libraryFile, libraryPage());
