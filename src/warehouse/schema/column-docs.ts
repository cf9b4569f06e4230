import type { RelationNote } from "./column-doc.ts";
import { barNotes } from "./column-docs-bars.ts";
import { ledgerNotes } from "./column-docs-coverage.ts";
import { rowNotes } from "./column-docs-data.ts";
import { insideNotes } from "./column-docs-internal.ts";

/** The meaning of every relation and column, in groups: for `mds-sync query --schema` and docs/dictionary.md. */
export const relationGroups: readonly {
  readonly title: string;
  readonly notes: Readonly<Record<string, RelationNote>>;
}[] = [
  { title: "Lookups and data", notes: rowNotes },
  { title: "Bars and comparisons", notes: barNotes },
  { title: "The ledger and what was odd", notes: ledgerNotes },
  { title: "Inside", notes: insideNotes },
];

export const relationNotes: Readonly<Record<string, RelationNote>> = Object.assign(
  {},
  ...relationGroups.map(({ notes }) => notes),
);

/** What quants are shown first; the tables inside are for those who ask, but for the one that is there to be joined. */
export const shownNotes: Readonly<Record<string, RelationNote>> = {
  ...rowNotes,
  ...barNotes,
  ...ledgerNotes,
  series: insideNotes.series,
};
