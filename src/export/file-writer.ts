import { join } from "node:path";
import { type ExportPeriod, partitionColumn } from "../warehouse/read/export-periods.ts";
import { type ExportRelation, inSnapshot, type RelationRow } from "../warehouse/read/export-relations.ts";
import { readPeriod } from "../warehouse/read/export-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { type FileSystemInfo, MIN_FREE_BYTES, readFreeBytes } from "../warehouse/sqlite/disk.ts";
import { outOfSpace } from "./errors.ts";
import { hasFile, storeVersion } from "./export-folder.ts";
import { type Manifest, type ManifestFile, partitionPath } from "./manifest.ts";
import type { ParquetWriter, RowSource } from "./parquet-writer.ts";
import { relationFingerprint, relationSource } from "./relation-files.ts";
import { labelSource, periodSource } from "./stream-files.ts";

/** An estimate for the space check. If it is too low, DuckDB reports the full disk. */
const MAX_BYTES_PER_ROW = 24;
const MEBIBYTE = 1024 * 1024;

interface FileWriterOptions {
  readonly connection: Connection;
  readonly writer: ParquetWriter;
  readonly folder: string;
  readonly work: string;
  readonly previous: Manifest | undefined;
  readonly fileSystem: FileSystemInfo | undefined;
  /** Called with the rows of files that are written, and of files that stay unchanged. */
  readonly onRows: (count: number) => void;
  readonly onFile: (file: ManifestFile) => void;
}

/** The rows of a file, and the SQL that selects its columns from them. */
interface FileContent {
  readonly source: RowSource;
  readonly select: string;
}

/** Writes the files of an export, or reuses those of the previous export whose content has not changed. */
export class FileWriter {
  readonly files: ManifestFile[] = [];
  readonly written: ManifestFile[] = [];
  readonly #options: FileWriterOptions;
  readonly #previousFiles: ReadonlyMap<string, ManifestFile>;

  constructor(options: FileWriterOptions) {
    this.#options = options;
    this.#previousFiles = new Map(options.previous?.files.map((file) => [file.path, file]));
  }

  /** Reuses a file of the previous export without reading its period from the warehouse. */
  reusePrevious(file: ManifestFile): void {
    if (hasFile(this.#options.folder, file)) this.files.push(file);
  }

  /** Rows, ledger and fingerprint come from one snapshot. */
  async writePeriod(period: ExportPeriod, corrections: ReadonlyMap<string, string>): Promise<void> {
    const { connection, writer, onRows } = this.#options;
    const { stream, part, unit } = period;
    const folder = partitionColumn(stream);
    const partition = {
      ...(folder ? { [folder]: part ?? "" } : {}),
      ...(unit === "whole" ? {} : { [unit]: period.period }),
    };
    await inSnapshot(connection, async () => {
      const content = readPeriod(connection, period, corrections);
      // The last rows of the period were removed after the periods were listed.
      if (content.rows === 0) return;
      const { fingerprint, rows, times } = content;
      const isWritten = await this.#writeIfChanged(
        { relation: stream, partition, fingerprint, rows, times },
        async () => {
          await writer.setLabels(labelSource(stream, content));
          return periodSource(stream, content, onRows);
        },
      );
      if (!isWritten) onRows(rows);
    });
  }

  async writeRelation(relation: ExportRelation, rows: readonly RelationRow[]): Promise<void> {
    const fingerprint = relationFingerprint(relation, rows);
    await this.#writeIfChanged(
      { relation: relation.name, partition: {}, fingerprint, rows: rows.length },
      () => relationSource(relation, rows),
    );
  }

  async #writeIfChanged(
    facts: Pick<ManifestFile, "relation" | "partition" | "fingerprint" | "rows" | "times">,
    make: () => FileContent | Promise<FileContent>,
  ): Promise<boolean> {
    const { folder, work, writer, onFile } = this.#options;
    const place = [facts.relation, partitionPath(facts.partition)].filter((part) => part !== "").join("/");
    const old = this.#previousFiles.get(`${place}/data.parquet`);
    if (old && old.fingerprint === facts.fingerprint && hasFile(folder, old)) {
      this.files.push({ ...old, times: facts.times });
      return false;
    }
    this.#assertRoom(facts.rows);
    const unfinished = join(work, "unfinished.parquet");
    const { source, select } = await make();
    await writer.write(unfinished, source, select);
    const file: ManifestFile = { ...facts, ...storeVersion(folder, unfinished, place) };
    this.files.push(file);
    this.written.push(file);
    onFile(file);
    return true;
  }

  /** Leaves a reserve free: the writer of a warehouse on the same disk stops when the reserve is used up. */
  #assertRoom(rows: number): void {
    const { work, folder, fileSystem } = this.#options;
    const needed = rows * MAX_BYTES_PER_ROW + MIN_FREE_BYTES;
    const free = readFreeBytes(join(work, "file"), fileSystem);
    if (free >= needed) return;
    const size = (bytes: number) => `${Math.ceil(bytes / MEBIBYTE)} MiB`;
    throw outOfSpace(folder, `${size(free)} are free, ${size(needed)} are needed`);
  }
}
