import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  DOUBLE,
  type DuckDBConnection,
  type DuckDBDataChunk,
  DuckDBInstance,
  DuckDBTableFunction,
  VARCHAR,
} from "@duckdb/node-api";
import { quoteName, quoteText } from "../model/sql-text.ts";

/** Numbers are passed as doubles and null as NaN, because setting a validity bit costs more than setting a value. */
export interface SourceColumn {
  readonly name: string;
  readonly kind: "number" | "text";
}

export type SourceRow = readonly (number | string | null)[];

/** Rows, in the order of the file. */
export interface RowSource {
  readonly columns: readonly SourceColumn[];
  readonly blocks: Iterator<SourceBlock>;
}

/** The rows of a file, and the SQL that selects its columns from `source_rows()`. */
export interface FileContent {
  readonly source: RowSource;
  readonly select: string;
}

export interface SourceBlock {
  /** The values of the leading columns, which all rows of the block share. */
  readonly prefix: readonly number[];
  readonly rows: readonly SourceRow[];
  /** The values of the last column, if the rows do not contain it. */
  readonly flags?: readonly (boolean | null)[] | undefined;
}

/** DuckDB's own limit. */
const MAX_ROWS_PER_CHUNK = 2_048;
/**
 * A month of one series at 30 seconds fills three groups, so a reader of one series decodes little else. The statistics
 * that let readers skip a group stay small.
 */
const ROWS_PER_GROUP = 15 * MAX_ROWS_PER_CHUNK;

/** Writes Parquet files from rows that DuckDB pulls as it needs them: memory does not grow with the file. */
export class ParquetWriter {
  readonly #instance: DuckDBInstance;
  readonly #connection: DuckDBConnection;
  #source: RowSource | undefined;
  #block: SourceBlock | undefined;
  #at = 0;
  #error: unknown;

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#instance = instance;
    this.#connection = connection;
    connection.registerTableFunction(
      DuckDBTableFunction.create({
        name: "source_rows",
        bindFunction: (bind) => {
          for (const { name, kind } of this.#source?.columns ?? [])
            bind.addResultColumn(name, kind === "number" ? DOUBLE : VARCHAR);
        },
        initFunction: (init) => init.setMaxThreads(1),
        mainFunction: (info, chunk) => {
          try {
            this.#fill(chunk);
          } catch (error) {
            this.#error = error;
            info.setError("the rows cannot be read");
          }
        },
      }),
    );
  }

  static async open(temporary: string): Promise<ParquetWriter> {
    const instance = await openDuckDb(":memory:", { temp_directory: temporary });
    const connection = await instance.connect();
    // The join must build on the labels and probe with the rows, which keeps the rows in order.
    await connection.run("SET disabled_optimizers = 'join_order,build_side_probe_side'");
    return new ParquetWriter(instance, connection);
  }

  /**
   * Version 1 has only plain and dictionary encodings, which every reader knows. The others of version 2 would save a third
   * of a tick's bytes. `select` reads from the table function `source_rows()`, which returns the rows of the source.
   */
  write(file: string, source: RowSource, select: string): Promise<void> {
    return this.#run(
      source,
      `COPY (${select}) TO ${quoteText(file)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v1, ROW_GROUP_SIZE ${ROWS_PER_GROUP})`,
    );
  }

  /** Fills the table `labels`: texts that many rows share and that `select` joins to them. */
  async setLabels(source: RowSource): Promise<void> {
    await this.#run(source, "CREATE OR REPLACE TEMP TABLE labels AS FROM source_rows()");
  }

  async #run(source: RowSource, sql: string): Promise<void> {
    this.#source = source;
    this.#block = undefined;
    this.#error = undefined;
    try {
      await this.#connection.run(sql);
    } catch (error) {
      throw this.#error ?? error;
    } finally {
      source.blocks.return?.();
      this.#source = undefined;
    }
  }

  async run(sql: string): Promise<void> {
    await this.#connection.run(sql);
  }

  async rows(sql: string): Promise<SourceRow[]> {
    return (await this.#connection.runAndReadAll(sql)).getRowsJson() as SourceRow[];
  }

  close(): void {
    this.#connection.closeSync();
    this.#instance.closeSync();
  }

  #fill(chunk: DuckDBDataChunk): void {
    const block = this.#nextBlock();
    if (!block || !this.#source) {
      chunk.rowCount = 0;
      return;
    }
    const { columns } = this.#source;
    const { prefix, rows, flags } = block;
    const from = this.#at;
    const count = Math.min(MAX_ROWS_PER_CHUNK, rows.length - from);
    chunk.rowCount = count;
    columns.forEach(({ kind }, column) => {
      const vector = chunk.getColumnVector(column);
      const place = column - prefix.length;
      const same = prefix[column];
      if (same !== undefined) for (let i = 0; i < count; i++) vector.setItem(i, same);
      else if (flags && column === columns.length - 1)
        for (let i = 0; i < count; i++) vector.setItem(i, numberOf(flags[from + i]));
      else if (kind === "number")
        for (let i = 0; i < count; i++) vector.setItem(i, rows[from + i]?.[place] ?? Number.NaN);
      else for (let i = 0; i < count; i++) vector.setItem(i, rows[from + i]?.[place] ?? null);
      vector.flush();
    });
    this.#at += count;
  }

  #nextBlock(): SourceBlock | undefined {
    while (!this.#block || this.#at >= this.#block.rows.length) {
      const next = this.#source?.blocks.next();
      if (!next || next.done === true) return undefined;
      this.#block = next.value;
      this.#at = 0;
    }
    return this.#block;
  }
}

/**
 * Loads no extension from the network, and limits memory and threads because a daemon may run beside it. One thread
 * suffices: all rows come from one source, and a second thread would only spin while it waits for them.
 */
export function openDuckDb(path: string, options: Record<string, string> = {}): Promise<DuckDBInstance> {
  return DuckDBInstance.create(path, {
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    memory_limit: "512MB",
    threads: "1",
    ...options,
  });
}

/** Null becomes NaN. */
function numberOf(flag: boolean | null | undefined): number {
  return flag === null || flag === undefined ? Number.NaN : Number(flag);
}

const ROWS_PER_BLOCK = 2_048;

const number = (name: string) => `nullif(${name}, 'NaN'::DOUBLE)`;

/** By type: what DuckDB gets for a value, and how it is stored. */
const columnTypes = {
  text: { kind: "text", store: (name: string) => name },
  real: { kind: "number", store: number },
  integer: { kind: "number", store: (name: string) => `CAST(${number(name)} AS BIGINT)` },
  /** An integer as text, because a double rounds beyond 2^53. */
  digits: { kind: "text", store: (name: string) => `CAST(${name} AS BIGINT)` },
  flag: { kind: "number", store: (name: string) => `${number(name)} = 1` },
  /** A moment in microseconds since 1970. */
  micros: { kind: "number", store: (name: string) => `make_timestamp(CAST(${number(name)} AS BIGINT))` },
  /** A moment as text, in UTC. */
  timestamp: { kind: "text", store: (name: string) => `CAST(${name} AS TIMESTAMP)` },
} as const;

export interface TableColumn {
  readonly name: string;
  readonly type: keyof typeof columnTypes;
}

/** Rows with a value for each column, as a file has them. */
export function tableContent(columns: readonly TableColumn[], rows: Iterable<SourceRow>): FileContent {
  // The source has names of its own: those of the columns may contain any character.
  const selected = columns.map(
    ({ name, type }, at) => `${columnTypes[type].store(`c${at}`)} AS ${quoteName(name)}`,
  );
  return {
    source: {
      columns: columns.map(({ type }, at) => ({ name: `c${at}`, kind: columnTypes[type].kind })),
      blocks: inBlocks(rows),
    },
    select: `SELECT ${selected.join(", ")} FROM source_rows()`,
  };
}

function* inBlocks(rows: Iterable<SourceRow>): Generator<SourceBlock> {
  let block: SourceRow[] = [];
  for (const row of rows) {
    if (block.push(row) < ROWS_PER_BLOCK) continue;
    yield { prefix: [], rows: block };
    block = [];
  }
  yield { prefix: [], rows: block };
}

/** Writes one Parquet file. DuckDB pulls the blocks as it needs them: memory does not grow with the file. */
export async function writeParquetTable(
  file: string,
  columns: readonly TableColumn[],
  rows: Iterable<SourceRow>,
): Promise<void> {
  const work = mkdtempSync(join(dirname(file), ".mds-parquet-"));
  try {
    const writer = await ParquetWriter.open(work);
    try {
      const { source, select } = tableContent(columns, rows);
      await writer.write(file, source, select);
    } finally {
      writer.close();
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
