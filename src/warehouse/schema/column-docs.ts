import type { ColumnDoc, RelationDoc } from "./column-doc.ts";
import { type ColumnLines, columnDocsFile } from "./column-docs-file.ts";

function readColumns(lines: ColumnLines): ColumnDoc[] {
  if (Array.isArray(lines)) return lines.flatMap(readColumns);
  return Object.entries(lines).flatMap(([name, line]) => {
    const space = line.indexOf(" ");
    const [type, meaning] = [line.slice(0, space), line.slice(space + 1)];
    if (type !== "DECIMAL") return { name, type: type as ColumnDoc["type"], meaning };
    return [
      { name, type: "REAL", meaning },
      { name: `${name}_exact`, type: "TEXT", meaning: `${name} with every digit` },
    ];
  });
}

/** The meaning of every relation and column, in groups: for `mds-sync query --schema` and docs/dictionary.md. */
export const relationGroups = Object.entries(columnDocsFile.relations).map(([title, relations]) => ({
  title,
  docs: Object.fromEntries(
    Object.entries(relations).map(([name, { summary, columns }]): [string, RelationDoc] => [
      name,
      { summary, columns: readColumns(columns) },
    ]),
  ),
}));

/** The group that may change with any version, except `series`, which is meant to be joined. */
export const INTERNAL_TABLES = "Internal tables";

const docsOf = (groups: typeof relationGroups): Readonly<Record<string, RelationDoc>> =>
  Object.assign({}, ...groups.map(({ docs }) => docs));

export const relationDocs = docsOf(relationGroups);

/** What `query --schema` lists. */
export const publicDocs: Readonly<Record<string, RelationDoc>> = {
  ...docsOf(relationGroups.filter(({ title }) => title !== INTERNAL_TABLES)),
  ...(relationDocs.series === undefined ? {} : { series: relationDocs.series }),
};
