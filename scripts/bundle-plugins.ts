import { readFileSync } from "node:fs";
import type { Plugin } from "esbuild";

/** The sources load drizzle by `require`, which costs less than its ES modules. In a bundle these cost nothing, and shrink. */
export const importDrizzle: Plugin = {
  name: "import-drizzle",
  setup({ onLoad }) {
    onLoad({ filter: /\/warehouse\/sqlite\/drizzle\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replaceAll(
        /^export const (\{[^}]*\}) = load\(\s*("[^"]+"),?\s*\) as [^;]+;$/gm,
        "export $1 from $2;",
      ),
      loader: "ts",
    }));
  },
};

/** A bundle has the documentation of the columns as text that is parsed as JSON when the module runs. */
export const inlineColumnDocs: Plugin = {
  name: "inline-column-docs",
  setup({ onLoad }) {
    onLoad({ filter: /\/schema\/column-docs-file\.ts$/ }, async ({ path }) => {
      const { columnDocsFile } = await import(path);
      const text = JSON.stringify(JSON.stringify({ relations: columnDocsFile.relations }));
      return { contents: `export const columnDocsFile = JSON.parse(${text});` };
    });
  },
};
