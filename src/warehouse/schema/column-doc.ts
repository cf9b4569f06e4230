export interface ColumnDoc {
  readonly name: string;
  readonly type: "TEXT" | "INTEGER" | "REAL";
  readonly meaning: string;
}

/** The documentation of a relation for users who query it. */
export interface RelationDoc {
  readonly summary: string;
  readonly columns: readonly ColumnDoc[];
}

/** Relations in groups. */
export type SchemaResult = readonly {
  readonly title: string;
  readonly relations: readonly (RelationDoc & { readonly name: string })[];
}[];
