import { nearest } from "../../model/did-you-mean.ts";
import { ownRelations, undescribedColumns } from "../../warehouse/read/query.ts";
import { publicDocs, relationDocs } from "../../warehouse/schema/column-docs.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { describedTable, wrapped } from "../output/text.ts";
import { usageFailure } from "../support/context.ts";

/** Every relation that is there to be queried, one line each; a quant's own views too where there is a warehouse. */
export function relationList(reader: Connection | undefined, asJson: boolean): string {
  const relations = Object.entries(publicDocs).map(([name, { summary }]) => ({ name, summary }));
  for (const name of reader ? ownRelations(reader) : []) relations.push({ name, summary: "not of mds-sync" });
  if (asJson) return JSON.stringify(relations, null, 2);
  const list = describedTable(relations.map(({ name, summary }) => [name, summary]));
  return `${list}\n\n\`mds-sync query --schema NAME\` tells the columns of one.`;
}

/** The columns of one relation, with their meaning. */
export function relationSchema(reader: Connection | undefined, given: string, asJson: boolean): string {
  const known = [...Object.keys(relationDocs), ...(reader ? ownRelations(reader) : [])];
  const relation = known.find((name) => name.toLowerCase() === given.toLowerCase());
  if (relation === undefined) {
    const meant = nearest(given, known);
    throw usageFailure(
      `there is no relation ${given}`,
      meant === undefined ? "`mds-sync query` lists the relations" : `did you mean ${meant}?`,
    );
  }
  const note = relationDocs[relation];
  const columns = note?.columns ?? (reader ? undescribedColumns(reader, relation) : []);
  const summary = note?.summary ?? "not of mds-sync";
  if (asJson) return JSON.stringify({ name: relation, summary, columns }, null, 2);
  const table = describedTable(columns.map(({ name, type, meaning }) => [name, type, meaning]));
  return `${wrapped(`${relation}: ${summary}`)}\n\n${table}`;
}
