import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** Columns by name, each with its type and meaning; a list joins several. */
export type ColumnLines = Readonly<Record<string, string>> | ColumnLines[];

interface ColumnDocsFile {
  /** By title of the group and name of the relation. */
  readonly relations: Readonly<
    Record<string, Readonly<Record<string, { readonly summary: string; readonly columns: ColumnLines }>>>
  >;
}

/** The build puts the content in the place of this module: the program itself parses no YAML. */
export const columnDocsFile = parse(
  readFileSync(new URL("column-docs.yaml", import.meta.url), "utf8"),
) as ColumnDocsFile;
