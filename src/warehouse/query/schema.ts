import type { SchemaResult } from "../schema/column-doc.ts";
import { publicDocs, relationGroups } from "../schema/column-docs.ts";
import type { Connection } from "../sqlite/connection.ts";
import { readUndescribedColumns, readUserRelations } from "./query.ts";

/** The relations that people query, in the groups of the dictionary, and those that they added themselves. */
export function readSchema(reader: Connection): SchemaResult {
  const groups = relationGroups.map(({ title, docs }) => ({
    title,
    relations: Object.entries(docs)
      .filter(([name]) => name in publicDocs)
      .map(([name, doc]) => ({ name, ...doc })),
  }));
  const own = readUserRelations(reader).map((name) => ({
    name,
    summary: "not part of mds-sync",
    columns: readUndescribedColumns(reader, name),
  }));
  return [...groups, { title: "Your own", relations: own }].filter(({ relations }) => relations.length > 0);
}
