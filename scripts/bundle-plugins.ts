import type { Plugin } from "esbuild";

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
