import { join } from "node:path";
import { type ExportMonth, partitionColumn } from "../warehouse/read/export-months.ts";
import { type ExportRelation, inSnapshot, type RelationRow } from "../warehouse/read/export-relations.ts";
import { readMonth } from "../warehouse/read/export-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { type FileSystemInfo, freeBytes, SPACE_RESERVE_BYTES } from "../warehouse/sqlite/disk.ts";
import { noRoom } from "./errors.ts";
import { isThere, keepVersion } from "./export-folder.ts";
import { type Manifest, type ManifestFile, partitionPath } from "./manifest.ts";
import type { ParquetWriter, RowSource } from "./parquet-writer.ts";
import { relationFingerprint, relationSource } from "./relation-files.ts";
import { labelSource, monthSource } from "./stream-files.ts";

/** More than any row of ours takes; what is over is found when it is written. */
const BYTES_A_ROW = 24;
const MEBIBYTE = 1024 * 1024;

interface KeeperOptions {
  readonly connection: Connection;
  readonly writer: ParquetWriter;
  readonly folder: string;
  readonly work: string;
  readonly previous: Manifest | undefined;
  readonly fileSystem: FileSystemInfo | undefined;
  /** Called with rows as they are written, and with those of a file that stays as it is. */
  readonly onRows: (count: number) => void;
  readonly onFile: (file: ManifestFile) => void;
}

/** The rows for a file, and the SQL that makes its columns of them. */
interface MadeFile {
  readonly source: RowSource;
  readonly select: string;
}

/** Makes the files of an export, or keeps those of the previous one whose content has not changed. */
export class FileWriter {
  readonly files: ManifestFile[] = [];
  readonly written: ManifestFile[] = [];
  readonly #options: KeeperOptions;
  readonly #known: ReadonlyMap<string, ManifestFile>;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#known = new Map(options.previous?.files.map((file) => [file.path, file]));
  }

  /** The file stays as the previous export wrote it. */
  carryOver(file: ManifestFile): void {
    if (isThere(this.#options.folder, file)) this.files.push(file);
  }

  /** One snapshot: rows, ledger and fingerprint are of one moment. */
  async keepMonth(month: ExportMonth, corrections: ReadonlyMap<string, string>): Promise<void> {
    const { connection, writer, onRows } = this.#options;
    const folder = partitionColumn(month.stream);
    const partition = {
      ...(folder ? { [folder]: month.part ?? "" } : {}),
      month: month.month,
    };
    await inSnapshot(connection, async () => {
      const content = readMonth(connection, month, corrections);
      // Its last rows went since the months were looked for.
      if (content.rows === 0) return;
      const { fingerprint, rows } = content;
      await this.#keep({ relation: month.stream, partition, fingerprint, rows }, async () => {
        await writer.share(labelSource(month.stream, content));
        return monthSource(month.stream, content, onRows);
      });
    });
  }

  async keepRelation(relation: ExportRelation, rows: readonly RelationRow[]): Promise<void> {
    const fingerprint = relationFingerprint(relation, rows);
    await this.#keep({ relation: relation.name, partition: {}, fingerprint, rows: rows.length }, () =>
      relationSource(relation, rows),
    );
  }

  async #keep(
    facts: Pick<ManifestFile, "relation" | "partition" | "fingerprint" | "rows">,
    make: () => MadeFile | Promise<MadeFile>,
  ): Promise<void> {
    const { folder, work, writer, onRows, onFile } = this.#options;
    const place = [facts.relation, partitionPath(facts.partition)].filter((part) => part !== "").join("/");
    const old = this.#known.get(`${place}/data.parquet`);
    if (old && old.fingerprint === facts.fingerprint && isThere(folder, old)) {
      this.files.push(old);
      if (facts.partition.month !== undefined) onRows(old.rows);
      return;
    }
    this.#assertRoom(facts.rows);
    const unfinished = join(work, "unfinished.parquet");
    const { source, select } = await make();
    await writer.write(unfinished, source, select);
    const file: ManifestFile = { ...facts, ...keepVersion(folder, unfinished, place) };
    this.files.push(file);
    this.written.push(file);
    onFile(file);
  }

  /** The reserve stays free: on the warehouse's own disk its writer stops when it is touched. */
  #assertRoom(rows: number): void {
    const { work, folder, fileSystem } = this.#options;
    const needed = rows * BYTES_A_ROW + SPACE_RESERVE_BYTES;
    const free = freeBytes(join(work, "file"), fileSystem);
    if (free >= needed) return;
    const size = (bytes: number) => `${Math.ceil(bytes / MEBIBYTE)} MiB`;
    throw noRoom(folder, `only ${size(free)} are left, ${size(needed)} are needed`);
  }
}
