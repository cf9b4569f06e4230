import { suggestWord } from "../../model/did-you-mean.ts";
import { usageFailure } from "../../model/failure.ts";
import { readUndescribedColumns, readUserRelations } from "../../warehouse/query/query.ts";
import { publicDocs, relationDocs } from "../../warehouse/schema/column-docs.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatDescriptionTable, wrapText } from "../output/text.ts";

/** Lists every relation that users query, including views that they added to the warehouse. */
export function describeRelations(reader: Connection | undefined, asJson: boolean): string {
  const relations = Object.entries(publicDocs).map(([name, { summary }]) => ({ name, summary }));
  for (const name of reader ? readUserRelations(reader) : [])
    relations.push({ name, summary: "not part of mds-sync" });
  if (asJson) return JSON.stringify(relations, null, 2);
  const list = formatDescriptionTable(relations.map(({ name, summary }) => [name, summary]));
  return `${list}\n\n\`mds-sync query --schema NAME\` shows the columns of one relation.`;
}

/** Lists the columns of one relation with their meaning. */
export function describeRelation(reader: Connection | undefined, given: string, asJson: boolean): string {
  const known = [...Object.keys(relationDocs), ...(reader ? readUserRelations(reader) : [])];
  const relation = known.find((name) => name.toLowerCase() === given.toLowerCase());
  if (relation === undefined) {
    const remedy = suggestWord(given, known, "`mds-sync query` lists the relations");
    throw usageFailure(`there is no relation ${given}`, remedy);
  }
  const note = relationDocs[relation];
  const columns = note?.columns ?? (reader ? readUndescribedColumns(reader, relation) : []);
  const summary = note?.summary ?? "not part of mds-sync";
  if (asJson) return JSON.stringify({ name: relation, summary, columns }, null, 2);
  const table = formatDescriptionTable(columns.map(({ name, type, meaning }) => [name, type, meaning]));
  return `${wrapText(`${relation}: ${summary}`)}\n\n${table}`;
}
