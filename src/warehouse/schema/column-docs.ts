import type { RelationDoc } from "./column-doc.ts";
import { barDocs } from "./column-docs-bars.ts";
import { coverageDocs } from "./column-docs-coverage.ts";
import { dataDocs } from "./column-docs-data.ts";
import { internalDocs } from "./column-docs-internal.ts";
import { researchDocs } from "./column-docs-research.ts";

/** The meaning of every relation and column, in groups: for `mds-sync query --schema` and docs/dictionary.md. */
export const relationGroups: readonly {
  readonly title: string;
  readonly docs: Readonly<Record<string, RelationDoc>>;
}[] = [
  { title: "Lookups and data", docs: dataDocs },
  { title: "Bars and comparisons", docs: barDocs },
  { title: "Research views", docs: researchDocs },
  { title: "The ledger, changes and rejects", docs: coverageDocs },
  { title: "Internal tables", docs: internalDocs },
];

export const relationDocs: Readonly<Record<string, RelationDoc>> = Object.assign(
  {},
  ...relationGroups.map(({ docs }) => docs),
);

/** What `query --schema` lists: all but the internal tables, of which only `series` is meant to be joined. */
export const publicDocs: Readonly<Record<string, RelationDoc>> = {
  ...dataDocs,
  ...barDocs,
  ...researchDocs,
  ...coverageDocs,
  series: internalDocs.series,
};
