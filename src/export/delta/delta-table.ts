import { randomUUID } from "node:crypto";
import type { ManifestFile } from "../manifest.ts";

/** The intended content of a relation's Delta table. */
export interface DeltaTable {
  readonly relation: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  /** The column that is in the names of the folders instead of the files. */
  readonly partitionColumn: string | undefined;
  readonly files: readonly ManifestFile[];
}

type Protocol = ReturnType<typeof protocolOf>;
type TableMetadata = ReturnType<typeof metadataOf>;
type AddFile = ReturnType<typeof addFile>;

/** One line of a log entry; an action that this program does not write has other keys. */
export type Action =
  | { readonly commitInfo: Readonly<Record<string, unknown>> }
  | { readonly protocol: Protocol }
  | { readonly metaData: TableMetadata }
  | { readonly add: AddFile }
  | { readonly remove: Pick<AddFile, "path" | "dataChange"> & { readonly deletionTimestamp: number } };

/** The state of a table after the newest entry of its log. */
export interface TableState {
  /** -1 before the first entry. */
  readonly version: number;
  readonly protocol: Protocol | undefined;
  readonly metaData: TableMetadata | undefined;
  readonly files: ReadonlyMap<string, AddFile>;
  /** The export that wrote the newest entry; undefined if another program or a checkpoint did. */
  readonly generation: string | undefined;
}

export const emptyTable: TableState = {
  version: -1,
  protocol: undefined,
  metaData: undefined,
  files: new Map(),
  generation: undefined,
};

const types: Readonly<Record<string, string>> = {
  VARCHAR: "string",
  BIGINT: "long",
  INTEGER: "integer",
  DOUBLE: "double",
  BOOLEAN: "boolean",
  DATE: "date",
  // Delta's `timestamp` has a time zone, the files' timestamps have none: DuckDB would shift them by the reader's zone.
  TIMESTAMP: "timestamp_ntz",
};

/** The actions that turn `state` into `table`; none if it is that already. */
export function tableChanges(state: TableState, table: DeltaTable, now: number): Action[] {
  const protocol = protocolOf(table);
  const metaData = metadataOf(table, state.metaData?.id ?? randomUUID(), state.metaData?.createdTime ?? now);
  const columnsOf = ({ schemaString, partitionColumns }: TableMetadata) =>
    JSON.stringify([schemaString, partitionColumns]);
  const hasSameColumns = state.metaData && columnsOf(state.metaData) === columnsOf(metaData);
  const wanted = new Map(table.files.map((file) => [addPath(file, table.relation), file]));
  const added = [...wanted].filter(([path, { bytes }]) => state.files.get(path)?.size !== bytes);
  const removed = [...state.files.keys()].filter((path) => !wanted.has(path));
  return [
    ...(isSameProtocol(state.protocol, protocol) ? [] : [{ protocol }]),
    ...(hasSameColumns ? [] : [{ metaData }]),
    ...removed.map((path) => ({ remove: { path, deletionTimestamp: now, dataChange: true } })),
    ...added.map(([path, file]) => ({ add: addFile(path, file, table, now) })),
  ];
}

export function applyActions(state: TableState, version: number, actions: readonly Action[]): TableState {
  let { protocol, metaData } = state;
  let generation: string | undefined;
  const files = new Map(state.files);
  for (const action of actions) {
    if ("commitInfo" in action && action.commitInfo) generation = String(action.commitInfo.generation ?? "");
    else if ("protocol" in action && action.protocol) protocol = action.protocol;
    else if ("metaData" in action && action.metaData) metaData = action.metaData;
    else if ("add" in action && action.add) files.set(action.add.path, action.add);
    else if ("remove" in action && action.remove) files.delete(action.remove.path);
  }
  return { version, protocol, metaData, files, generation };
}

/** The versions that every reader knows, unless the table has a timestamp without a zone, which is a feature by name. */
function protocolOf({ columns }: DeltaTable) {
  if (!columns.some(({ type }) => type === "TIMESTAMP")) return { minReaderVersion: 1, minWriterVersion: 2 };
  const features = ["timestampNtz"];
  return { minReaderVersion: 3, minWriterVersion: 7, readerFeatures: features, writerFeatures: features };
}

function isSameProtocol(one: Protocol | undefined, other: Protocol): boolean {
  const figures = (of: Protocol | undefined) =>
    JSON.stringify([of?.minReaderVersion, of?.minWriterVersion, of?.readerFeatures ?? []]);
  return figures(one) === figures(other);
}

function metadataOf({ relation, columns, partitionColumn }: DeltaTable, id: string, createdTime: number) {
  const partitionColumns = partitionColumn === undefined ? [] : [partitionColumn];
  const folders = partitionColumns.map((name) => ({ name, type: "VARCHAR" }));
  const fields = [...folders, ...columns].map(({ name, type }) => ({
    name,
    type: types[type] ?? "string",
    nullable: true,
    metadata: {},
  }));
  return {
    id,
    name: relation,
    format: { provider: "parquet", options: {} },
    schemaString: JSON.stringify({ type: "struct", fields }),
    partitionColumns,
    configuration: {},
    createdTime,
  };
}

function addFile(path: string, file: ManifestFile, { columns, partitionColumn }: DeltaTable, now: number) {
  const { partition, bytes, rows, times } = file;
  const timeColumn = columns.find(({ name }) => name === "ts" || name === "day")?.name ?? "";
  const bounds = times && {
    minValues: { [timeColumn]: times.first },
    maxValues: { [timeColumn]: times.last },
  };
  return {
    path,
    partitionValues:
      partitionColumn === undefined ? {} : { [partitionColumn]: partition[partitionColumn] ?? "" },
    size: bytes,
    modificationTime: now,
    dataChange: true,
    stats: JSON.stringify({ numRecords: rows, ...bounds }),
  };
}

/** Relative to the table's folder, and encoded as a URL: a `%` in the name of a folder becomes `%25`. */
function addPath({ version }: ManifestFile, relation: string): string {
  const path = version.slice(tableFolder(relation).length + 1);
  return path
    .split("/")
    .map((part) => encodeURIComponent(part).replaceAll("%3D", "="))
    .join("/");
}

/** The files of the versions are never replaced, as the log of a table demands. */
export const tableFolder = (relation: string) => `versions/${relation}`;
