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
        return { name, doc, signatures: parents === "" ? [] : [`${name} extends ${parents}`], members };
      }
      case "TSTypeAliasDeclaration": {
        const { name } = node.id;
        return { name, doc, signatures: [`${name} = ${this.#typeText(node.typeAnnotation)}`], members: [] };
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

const opening = `# The TypeScript library

Generated by \`npm run docs\` from the declarations in \`src/library/\`. Node 22.12 or newer; types are included.

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

The file is opened read-only, and importing the package does nothing else. Each call reads one state of the warehouse, even while a
daemon writes it. Rows have the columns of the views of the same kind ([dictionary](dictionary.md)), and the commands
\`mds-sync bars\`, \`ticks\` and \`asof\` write the same rows. Whatever fails throws a \`Failure\` whose \`message\` says what is wrong and
whose \`remedy\` says what to do.

Bars shorter than a day begin at multiples of their length since 1970-01-01T00:00Z. Bars of days begin at midnight in the time zone of
\`tz\`, and weeks on Monday. A bar belongs to a range if it begins in it.

[\`examples/typescript\`](../examples/typescript) is a project to copy. \`mds-sync/schema\` exports the tables for typed queries with
[drizzle](https://orm.drizzle.team).`;

export function libraryPage(): string {
  const functions = [...declaredIn(sources.entry), ...declaredIn(sources.arrow)];
  const parts: [string, Declared[]][] = [
    ["Functions", functions],
    ["Warehouse", methodsOf("Warehouse")],
    ["Options", declaredIn(sources.options)],
    [
      "Rows",
      [...declaredIn(sources.rows), ...declaredIn(sources.gaps).filter(({ name }) => name === "GapRow")],
    ],
  ];
  const sections = parts.map(([title, all]) => [`## ${title}`, ...all.map(section)].join("\n\n"));
  const failures = `## Failures

| class | thrown |
|---|---|
| \`Failure\` | for whatever fails: \`code\` is stable across releases, \`message\` says what failed, \`remedy\` what to do |
| \`IncompleteFailure\` | if \`requireComplete\` is set and something is missing: \`gaps\` lists it |`;
  return `${[opening, ...sections, failures].join("\n\n")}\n`;
}

function section({ name, doc, signatures, members }: Declared): string {
  const code = signatures.length === 0 ? [] : [`\`\`\`ts\n${signatures.join("\n")}\n\`\`\``];
  const cell = (text: string) => text.replaceAll("|", "\\|");
  const table =
    members.length === 0
      ? []
      : [
          [
            "| property | type | meaning |",
            "|---|---|---|",
            ...members.map(
              (member) => `| \`${member.name}\` | \`${cell(member.type)}\` | ${cell(member.doc)} |`,
            ),
          ].join("\n"),
        ];
  return [`### ${name}`, ...code, ...(doc === "" ? [] : [doc]), ...table].join("\n\n");
}

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
