import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";

/* Reads a Delta table as its protocol says, with no code of the program: the log, then the files that it adds. */

export interface Add {
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string>>;
  readonly size: number;
  readonly stats: string;
}

export interface Snapshot {
  readonly version: number;
  readonly protocol: { minReaderVersion: number; minWriterVersion: number; readerFeatures?: string[] };
  readonly fields: readonly { readonly name: string; readonly type: string }[];
  readonly partitionColumns: readonly string[];
  readonly adds: readonly Add[];
}

export type Objects = Record<string, unknown>[];

const compressors = { ZSTD: (input: Uint8Array) => new Uint8Array(zstdDecompressSync(input)) };

export async function readParquet(file: string): Promise<Objects> {
  return parquetReadObjects({ file: await asyncBufferFromFile(file), compressors });
}

export const parquetTypes = async (file: string) =>
  (await parquetMetadataAsync(await asyncBufferFromFile(file))).schema.slice(1);

/** The newest version of a table, or the given one. */
export async function readSnapshot(table: string, version?: number): Promise<Snapshot> {
  const log = join(table, "_delta_log");
  const names = readdirSync(log).sort();
  const number = (name: string) => Number(name.slice(0, 20));
  const upTo = version ?? Number.POSITIVE_INFINITY;
  const pointer = join(log, "_last_checkpoint");
  const checkpoint = existsSync(pointer) ? JSON.parse(readFileSync(pointer, "utf8")).version : -1;
  const start = checkpoint <= upTo ? checkpoint : -1;
  const actions: Record<string, unknown>[] = [];
  if (start >= 0)
    actions.push(...(await readParquet(join(log, `${String(start).padStart(20, "0")}.checkpoint.parquet`))));
  const entries = names.filter((name) => /^\d{20}\.json$/.test(name));
  const replayed = entries.filter((name) => number(name) > start && number(name) <= upTo);
  replayed.forEach((name, at) => {
    if (number(name) !== start + 1 + at) throw new Error(`${name} follows a gap`);
    const lines = readFileSync(join(log, name), "utf8").trimEnd().split("\n");
    actions.push(...lines.map((line) => JSON.parse(line)));
  });
  const adds = new Map<string, Add>();
  let [protocol, metaData]: [unknown, unknown] = [undefined, undefined];
  for (const action of actions) {
    if (action.protocol) protocol = action.protocol;
    if (action.metaData) metaData = action.metaData;
    const { add, remove } = action as { add?: Add; remove?: { path: string } };
    if (add) adds.set(add.path, add);
    if (remove && !adds.delete(remove.path)) throw new Error(`${remove.path} is removed but was never added`);
  }
  const { schemaString, partitionColumns } = metaData as { schemaString: string; partitionColumns: string[] };
  return {
    version: start + replayed.length,
    protocol: protocol as Snapshot["protocol"],
    fields: JSON.parse(schemaString).fields,
    partitionColumns,
    adds: [...adds.values()],
  };
}

/** All rows of a version. */
export async function readTableRows(table: string, version?: number): Promise<Objects> {
  const { adds, fields } = await readSnapshot(table, version);
  const rows: Objects = [];
  for (const { path, partitionValues, size } of adds) {
    const file = join(table, decodeURIComponent(path));
    if (readFileSync(file).length !== Number(size)) throw new Error(`${path} has another size`);
    for (const row of await readParquet(file)) {
      const all: Record<string, unknown> = { ...partitionValues, ...row };
      rows.push(Object.fromEntries(fields.map(({ name }) => [name, all[name]])));
    }
  }
  return rows;
}
