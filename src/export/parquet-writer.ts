import {
  DOUBLE,
  type DuckDBConnection,
  type DuckDBDataChunk,
  DuckDBInstance,
  DuckDBTableFunction,
  VARCHAR,
} from "@duckdb/node-api";

/** Numbers travel as doubles, NaN standing for null: setting a bit for each null would cost more than the value. */
export interface SourceColumn {
  readonly name: string;
  readonly kind: "number" | "text";
}

export type SourceRow = readonly (number | string | null)[];

/** Rows, in the order in which they are to stand. */
export interface RowSource {
  readonly columns: readonly SourceColumn[];
  readonly blocks: Iterator<SourceBlock>;
}

export interface SourceBlock {
  /** The leading columns, the same for the whole block. */
  readonly prefix: readonly number[];
  readonly rows: readonly SourceRow[];
  /** The last column, where it is not part of the rows. */
  readonly flags?: readonly (boolean | null)[] | undefined;
}

/** What a chunk of DuckDB's holds at most. */
const ROWS_A_CHUNK = 2_048;
/**
 * A month of one series at 30 seconds fills three of these: a reader of one series decodes little else, and the figures
 * that a group carries for being skipped cost next to nothing.
 */
const ROWS_A_GROUP = 15 * ROWS_A_CHUNK;

/** Writes Parquet files from rows that are handed over as they are asked for: memory does not grow with the file. */
export class ParquetWriter {
  readonly #instance: DuckDBInstance;
  readonly #connection: DuckDBConnection;
  #source: RowSource | undefined;
  #block: SourceBlock | undefined;
  #at = 0;
  #trouble: unknown;

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#instance = instance;
    this.#connection = connection;
    connection.registerTableFunction(
      DuckDBTableFunction.create({
        name: "handed_over",
        bindFunction: (bind) => {
          for (const { name, kind } of this.#source?.columns ?? [])
            bind.addResultColumn(name, kind === "number" ? DOUBLE : VARCHAR);
        },
        initFunction: (init) => init.setMaxThreads(1),
        mainFunction: (info, chunk) => {
          try {
            this.#fill(chunk);
          } catch (error) {
            this.#trouble = error;
            info.setError("the rows could not be read");
          }
        },
      }),
    );
  }

  static async open(temporary: string): Promise<ParquetWriter> {
    const instance = await openDuckDb(":memory:", { temp_directory: temporary });
    const connection = await instance.connect();
    // Rows stream past the labels that they are joined with, in their own order; never the other way round.
    await connection.run("SET disabled_optimizers = 'join_order,build_side_probe_side'");
    return new ParquetWriter(instance, connection);
  }

  /** `select` reads from `handed_over()`, whose columns are the source's. */
  write(file: string, source: RowSource, select: string): Promise<void> {
    return this.#run(
      source,
      `COPY (${select}) TO ${quoted(file)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE ${ROWS_A_GROUP})`,
    );
  }

  /** Texts that many rows share: `select` joins them to its rows, from the table `labels`. */
  async share(source: RowSource): Promise<void> {
    await this.#run(source, "CREATE OR REPLACE TEMP TABLE labels AS FROM handed_over()");
  }

  async #run(source: RowSource, sql: string): Promise<void> {
    this.#source = source;
    this.#block = undefined;
    this.#trouble = undefined;
    try {
      await this.#connection.run(sql);
    } catch (error) {
      throw this.#trouble ?? error;
    } finally {
      source.blocks.return?.();
      this.#source = undefined;
    }
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
    const count = Math.min(ROWS_A_CHUNK, rows.length - from);
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
 * Never asks the network for an extension, and stays small beside a daemon: one thread, since rows come from one place and a
 * second would only spin while it waits for them.
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

/** Nulls go over as NaN. */
function numberOf(flag: boolean | null | undefined): number {
  return flag === null || flag === undefined ? Number.NaN : Number(flag);
}

export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
