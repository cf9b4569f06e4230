/** The part of a Babel node that the rules read. */
interface Node {
  readonly type: string;
  readonly callee?: { readonly name?: string };
  readonly key?: { readonly name?: string };
  readonly value?: unknown;
}

interface NodePath {
  readonly node: Node;
  readonly parent: Node | null;
  readonly parentPath: NodePath | null;
}

/** Properties whose values are sentences for people. */
const proseProperties = new Set(["remedy", "meaning"]);

/** Arguments that are sentences: tests assert the code of a failure, not its wording. */
function isProse({ node, parent }: NodePath): boolean {
  if (node.type !== "StringLiteral" && node.type !== "TemplateLiteral") return false;
  const isArgument = parent?.type === "NewExpression" || parent?.type === "CallExpression";
  if (isArgument) return /(Error|Failure)$/.test(parent.callee?.name ?? "");
  return parent?.type === "ObjectProperty" && proseProperties.has(parent.key?.name ?? "");
}

/** A constant table of a module (`{ … } as const`): a test of an entry would only repeat the entry. */
function isTable({ node, parentPath }: NodePath): boolean {
  if (node.type !== "TSAsExpression" && node.type !== "TSSatisfiesExpression") return false;
  const declaration = parentPath?.node.type === "VariableDeclarator" ? parentPath.parentPath : undefined;
  const scope = declaration?.parent;
  return scope?.type === "Program" || scope?.type === "ExportNamedDeclaration";
}

/** The plugin that tells Stryker which code not to mutate. */
export const strykerPlugins = [
  {
    kind: "Ignore",
    name: "prose-and-tables",
    value: {
      shouldIgnore(path: NodePath): string | undefined {
        if (isProse(path)) return "a sentence for people";
        if (isTable(path)) return "a table of constants";
        return undefined;
      },
    },
  },
];
