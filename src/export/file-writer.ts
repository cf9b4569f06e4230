import { createHash } from "node:crypto";
import { join } from "node:path";
import { type ExportPeriod, partitionColumn } from "../warehouse/read/export-periods.ts";
import { type ExportRelation, inSnapshot, type RelationRow } from "../warehouse/read/export-relations.ts";
import { readLabels, readPeriod } from "../warehouse/read/export-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { type FileSystemInfo, MIN_FREE_BYTES, readFreeBytes } from "../warehouse/sqlite/disk.ts";
import { outOfSpace } from "./errors.ts";
import type { ExportStore } from "./export-store.ts";
import { filePath, type Manifest, type ManifestFile } from "./manifest.ts";
import { type FileContent, type ParquetWriter, tableContent } from "./parquet-writer.ts";
import { labelSource, periodSource } from "./stream-files.ts";

/** An estimate for the space check. If it is too low, DuckDB reports the full disk. */
const MAX_BYTES_PER_ROW = 24;
const MEBIBYTE = 1024 * 1024;

interface FileWriterOptions {
  readonly connection: Connection;
  readonly writer: ParquetWriter;
  readonly store: ExportStore;
  readonly previous: Manifest | undefined;
  readonly fileSystem: FileSystemInfo | undefined;
  /** Called with the rows of files that are written, and of files that stay unchanged. */
  readonly onRows: (count: number) => void;
  readonly onFile: (file: ManifestFile) => void;
}

type FileFacts = Pick<ManifestFile, "relation" | "partition" | "slice" | "fingerprint" | "rows" | "times">;

/** Writes the files of an export, or reuses those of the previous export whose content has not changed. */
export class FileWriter {
  readonly files: ManifestFile[] = [];
  readonly written: ManifestFile[] = [];
  readonly options: FileWriterOptions;
  readonly #previousFiles: ReadonlyMap<string, ManifestFile>;

  constructor(options: FileWriterOptions) {
    this.options = options;
    this.#previousFiles = new Map(options.previous?.files.map((file) => [filePath(file), file]));
  }

  /** Reuses a file of the previous export without reading its period from the warehouse. */
  reusePrevious(file: ManifestFile): void {
    if (this.options.store.hasFile(file)) this.files.push(file);
  }

  /**
   * Rows and ledger come from one snapshot. `isUnchanged`: the previous file has the period as it is, if its series have the same
   * names.
   */
  async writePeriod(period: ExportPeriod, isUnchanged: boolean): Promise<void> {
    const { connection, writer, onRows } = this.options;
    const { stream, part, unit, slice } = period;
    const folder = partitionColumn(stream);
    const place = {
      relation: stream,
      partition: {
        ...(folder && { [folder]: part ?? "" }),
        ...(unit !== "whole" && { [unit]: period.period }),
      },
      ...(slice !== period.period && { slice }),
    };
    const change = await inSnapshot(connection, async () => {
      const labels = readLabels(connection, period);
      const fingerprint = createHash("sha256").update(JSON.stringify(labels)).digest("hex");
      const reused = isUnchanged ? this.#reuseUnchanged({ ...place, fingerprint }) : undefined;
      if (reused) {
        onRows(reused.rows);
        return undefined;
      }
      const content = readPeriod(connection, period);
      const { rows, times } = content;
      // The last rows of the period were removed after the periods were listed.
      if (rows === 0) return undefined;
      const facts = { ...place, fingerprint, rows, times };
      await writer.setLabels(labelSource(stream, labels));
      await this.#write(facts, periodSource(stream, content, onRows));
      return facts;
    });
    if (change) await this.#store(change);
  }

  async writeRelation(relation: ExportRelation, rows: readonly RelationRow[]): Promise<void> {
    const { name, columns } = relation;
    const hash = createHash("sha256").update(name);
    for (const row of rows) hash.update(JSON.stringify(row));
    const facts = { relation: name, partition: {}, fingerprint: hash.digest("hex"), rows: rows.length };
    if (this.#reuseUnchanged(facts)) return;
    const typed = Object.entries(columns).map(([name, type]) => ({ name, type }));
    await this.#write(facts, tableContent(typed, rows));
    await this.#store(facts);
  }

  #reuseUnchanged(
    facts: Pick<FileFacts, "relation" | "partition" | "slice" | "fingerprint">,
  ): ManifestFile | undefined {
    const old = this.#previousFiles.get(filePath(facts));
    if (!old || old.fingerprint !== facts.fingerprint || !this.options.store.hasFile(old)) return undefined;
    this.files.push(old);
    return old;
  }

  async #write({ rows }: FileFacts, { source, select }: FileContent): Promise<void> {
    this.#assertRoom(rows);
    await this.options.writer.write(this.#unfinished, source, select);
  }

  /** Outside of the snapshot, because sending a file to a bucket takes time: docs/decisions/wal.md. */
  async #store(facts: FileFacts): Promise<void> {
    const { store, onFile } = this.options;
    const file: ManifestFile = { ...facts, ...(await store.storeVersion(this.#unfinished, filePath(facts))) };
    this.files.push(file);
    this.written.push(file);
    onFile(file);
  }

  get #unfinished(): string {
    return join(this.options.store.work, "unfinished.parquet");
  }

  /** Leaves a reserve free: the writer of a warehouse on the same disk stops when the reserve is used up. */
  #assertRoom(rows: number): void {
    const { store, fileSystem } = this.options;
    const needed = rows * MAX_BYTES_PER_ROW + MIN_FREE_BYTES;
    const free = readFreeBytes(join(store.work, "file"), fileSystem);
    if (free >= needed) return;
    const size = (bytes: number) => `${Math.ceil(bytes / MEBIBYTE)} MiB`;
    throw outOfSpace(store.place, `${size(free)} are free, ${size(needed)} are needed`);
  }
}
