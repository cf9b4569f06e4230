import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { quoteText } from "../../model/sql-text.ts";
import type { ParquetWriter } from "../parquet-writer.ts";
import type { Action } from "./delta-table.ts";

const texts = "MAP(VARCHAR, VARCHAR)";

/** The columns of a checkpoint; `txn` and `remove` are always null. */
const columns: Readonly<Record<string, string>> = {
  txn: "STRUCT(appId VARCHAR, version BIGINT, lastUpdated BIGINT)",
  add: `STRUCT(path VARCHAR, partitionValues ${texts}, size BIGINT, modificationTime BIGINT, dataChange BOOLEAN, stats VARCHAR)`,
  remove: "STRUCT(path VARCHAR, deletionTimestamp BIGINT, dataChange BOOLEAN)",
  metaData: `STRUCT(id VARCHAR, name VARCHAR, format STRUCT(provider VARCHAR, options ${texts}), schemaString VARCHAR,
    partitionColumns VARCHAR[], configuration ${texts}, createdTime BIGINT)`,
  protocol:
    "STRUCT(minReaderVersion INTEGER, minWriterVersion INTEGER, readerFeatures VARCHAR[], writerFeatures VARCHAR[])",
};

const struct = Object.entries(columns)
  .map(([name, type]) => `'${name}': '${type}'`)
  .join(", ");

export type CheckpointFormat = ReturnType<typeof createCheckpointFormat>;

/** Writes and reads checkpoints: the state of a table as a Parquet file, one action a row. */
export function createCheckpointFormat(writer: ParquetWriter, work: string) {
  const writeText = (text: string): string => {
    const file = join(work, "checkpoint.json");
    writeFileSync(file, text);
    return file;
  };
  return {
    writeText,
    /** Returns the path of a new file with the actions, given as lines of JSON. */
    async write(actions: string): Promise<string> {
      const file = join(work, "checkpoint.parquet");
      const source = `read_json(${quoteText(writeText(actions))}, format = 'newline_delimited', columns = {${struct}})`;
      await writer.run(
        `COPY (FROM ${source}) TO ${quoteText(file)} (FORMAT parquet, COMPRESSION snappy, PARQUET_VERSION v1)`,
      );
      return file;
    },
    async read(file: string): Promise<Action[]> {
      const names = Object.keys(columns);
      const json = names.map((name) => `CAST(to_json("${name}") AS VARCHAR)`).join(", ");
      const rows = await writer.rows(`SELECT ${json} FROM read_parquet(${quoteText(file)})`);
      return rows.flatMap((row) =>
        row.flatMap((value, at) =>
          value === null || value === "null"
            ? []
            : [{ [names[at] ?? ""]: JSON.parse(String(value)) } as unknown as Action],
        ),
      );
    },
  };
}
