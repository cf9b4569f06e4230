import { createHash } from "node:crypto";
import { join } from "node:path";
import { quoteText } from "../model/sql-text.ts";
import type { Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import { type ExportPeriod, partitionColumn } from "../warehouse/read/export-periods.ts";
import { type ExportRelation, inSnapshot, type RelationRow } from "../warehouse/read/export-relations.ts";
import { readLabels, readPeriod } from "../warehouse/read/export-rows.ts";
import { type HeldDay, listHeldDays, type MovedRange } from "../warehouse/rows/moved-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { type FileSystemInfo, MIN_FREE_BYTES, readFreeBytes } from "../warehouse/sqlite/disk.ts";
import { movedFileMissing, outOfSpace } from "./errors.ts";
import type { ExportStore } from "./export-store.ts";
import { fileFolder, filePath, fileRange, type Manifest, type ManifestFile } from "./manifest.ts";
import type { ParquetWriter, RowSource } from "./parquet-writer.ts";
import { relationFingerprint, relationSource } from "./relation-files.ts";
import { labelSource, periodSource } from "./stream-files.ts";

/** An estimate for the space check. If it is too low, DuckDB reports the full disk. */
const MAX_BYTES_PER_ROW = 24;
const MEBIBYTE = 1024 * 1024;
/** The next export lists more. */
const MAX_HELD_DAYS = 20_000;

interface FileWriterOptions {
  readonly connection: Connection;
  readonly writer: ParquetWriter;
  readonly store: ExportStore;
  readonly previous: Manifest | undefined;
  /** The index ticks of periods before this may leave the warehouse. */
  readonly moveBefore: Micros | undefined;
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

export function periodPartition({
  stream,
  part,
  unit,
  period,
}: Pick<ExportPeriod, "stream" | "part" | "unit" | "period">): Record<string, string> {
  const folder = partitionColumn(stream);
  return { ...(folder ? { [folder]: part ?? "" } : {}), ...(unit === "whole" ? {} : { [unit]: period }) };
}

type FilePlace = Pick<ManifestFile, "relation" | "partition">;
type FileFacts = Pick<ManifestFile, "relation" | "partition" | "slice" | "fingerprint" | "rows" | "times">;

function digestOfLabels(labels: readonly (readonly (string | null)[])[]): string {
  return createHash("sha256").update(JSON.stringify(labels)).digest("hex");
}

/** Writes the files of an export, or reuses those of the previous export whose content has not changed. */
export class FileWriter {
  readonly files: ManifestFile[] = [];
  /** Days of index ticks that this export has and the warehouse need not keep. */
  readonly heldDays: HeldDay[] = [];
  readonly written: ManifestFile[] = [];
  readonly #options: FileWriterOptions;
  readonly #previousFiles: ReadonlyMap<string, ManifestFile>;
  /** Even files of another version: the rows of some are nowhere else. */
  readonly #movedFiles: ReadonlyMap<string, readonly ManifestFile[]>;

  constructor(options: FileWriterOptions) {
    this.#options = options;
    const { previous: any } = options.store;
    this.#movedFiles = Map.groupBy(any?.warehouse === options.connection.path ? any.files : [], (file) =>
      fileFolder(file),
    );
    this.#previousFiles = new Map(options.previous?.files.map((file) => [filePath(file), file]));
  }

  /** Reuses a file of the previous export without reading its period from the warehouse. */
  reusePrevious(file: ManifestFile): void {
    if (this.#options.store.hasFile(file)) this.files.push(file);
  }

  /**
   * Rows and ledger come from one snapshot. `isUnchanged`: the previous file has the period as it is, if its series have the same
   * names. `moved`: ranges of the period whose rows only the previous file has; the new one takes them over.
   */
  async writePeriod(
    period: ExportPeriod,
    isUnchanged: boolean,
    moved: readonly MovedRange[] = [],
  ): Promise<void> {
    const { connection, writer, onRows } = this.#options;
    const { stream } = period;
    const isWhole = period.slice === period.period;
    const place = {
      relation: stream,
      partition: periodPartition(period),
      ...(!isWhole && { slice: period.slice }),
    };
    const { moveBefore } = this.#options;
    const isHeld = stream === "index_ticks" && isWhole && moveBefore !== undefined && period.to <= moveBefore;
    let heldDays: readonly HeldDay[] = [];
    const change = await inSnapshot(connection, async () => {
      if (isHeld && this.heldDays.length < MAX_HELD_DAYS) heldDays = listHeldDays(connection, period);
      const labels = readLabels(connection, period);
      const fingerprint = digestOfLabels(labels);
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
      const own = periodSource(stream, content, onRows);
      if (moved.length === 0) {
        await this.#write(facts, own);
        return facts;
      }
      await this.#write(facts, { ...own, select: await this.#joinMoved(own.select, facts, moved) });
      const [[all] = [0]] = await writer.rows(
        `SELECT count(*) FROM read_parquet(${quoteText(this.#unfinished)})`,
      );
      return { ...facts, rows: Number(all), times: undefined };
    });
    if (change) await this.#store(change);
    this.heldDays.push(...heldDays);
  }

  /** Takes over the files whose rows of `moved` only the previous export has; false if it does not have them either. */
  reuseMoved(place: FilePlace, moved: readonly TimeRange[]): boolean {
    const folder = fileFolder(place);
    const own = this.files.filter((file) => fileFolder(file) === folder).map(fileRange);
    const earlier = this.#findMoved(place, moved);
    const isHere = ({ from, to }: TimeRange) => own.some((each) => each.from <= from && each.to >= to);
    for (const file of earlier ?? []) if (!isHere(fileRange(file))) this.files.push(file);
    return earlier !== undefined;
  }

  /** The previous files of a folder that have rows of `ranges`; undefined if one of them, or all of the folder, is gone. */
  #findMoved(place: FilePlace, ranges: readonly TimeRange[]): ManifestFile[] | undefined {
    const all = this.#movedFiles.get(fileFolder(place));
    const files = all?.filter((file) => {
      const { from, to } = fileRange(file);
      return ranges.some((range) => range.from < to && range.to > from);
    });
    return files?.every((file) => this.#options.store.hasFile(file)) ? files : undefined;
  }

  /** A row that is stored again, such as the last one of a page, counts instead of the moved one. */
  async #joinMoved(own: string, facts: FileFacts, moved: readonly MovedRange[]): Promise<string> {
    const { store } = this.#options;
    const files = this.#findMoved(facts, moved);
    if (!files) throw movedFileMissing(store.place, fileFolder(facts));
    if (files.length === 0) return own;
    const paths = await Promise.all(files.map(async (file) => quoteText(await store.locate(file))));
    const isMoved = moved.map(
      ({ indexId, from, to }) => `(index_id = ${quoteText(indexId)} AND ts >= ${from} AND ts < ${to})`,
    );
    const earlier = `FROM read_parquet([${paths.join(", ")}], hive_partitioning = false, union_by_name = true)`;
    return `SELECT * EXCLUDE (is_own) FROM (
        SELECT *, true AS is_own FROM (${own})
        UNION ALL BY NAME SELECT *, false AS is_own ${earlier} WHERE ${isMoved.join(" OR ")})
      QUALIFY row_number() OVER (PARTITION BY index_id, ts ORDER BY is_own DESC) = 1 ORDER BY name, index_id, ts`;
  }

  async writeRelation(relation: ExportRelation, rows: readonly RelationRow[]): Promise<void> {
    const fingerprint = relationFingerprint(relation, rows);
    const facts = { relation: relation.name, partition: {}, fingerprint, rows: rows.length };
    if (this.#reuseUnchanged(facts)) return;
    await this.#write(facts, relationSource(relation, rows));
    await this.#store(facts);
  }

  #reuseUnchanged(
    facts: Pick<FileFacts, "relation" | "partition" | "slice" | "fingerprint">,
  ): ManifestFile | undefined {
    const old = this.#previousFiles.get(filePath(facts));
    if (!old || old.fingerprint !== facts.fingerprint || !this.#options.store.hasFile(old)) return undefined;
    this.files.push(old);
    return old;
  }

  async #write({ rows }: FileFacts, { source, select }: FileContent): Promise<void> {
    this.#assertRoom(rows);
    await this.#options.writer.write(this.#unfinished, source, select);
  }

  /** Outside of the snapshot, because sending a file to a bucket takes time: docs/decisions/wal.md. */
  async #store(facts: FileFacts): Promise<void> {
    const { store, onFile } = this.#options;
    const file: ManifestFile = {
      ...facts,
      ...(await store.storeVersion(this.#unfinished, filePath(facts))),
    };
    this.files.push(file);
    this.written.push(file);
    onFile(file);
  }

  get #unfinished(): string {
    return join(this.#options.store.work, "unfinished.parquet");
  }

  /** Leaves a reserve free: the writer of a warehouse on the same disk stops when the reserve is used up. */
  #assertRoom(rows: number): void {
    const { store, fileSystem } = this.#options;
    const needed = rows * MAX_BYTES_PER_ROW + MIN_FREE_BYTES;
    const free = readFreeBytes(join(store.work, "file"), fileSystem);
    if (free >= needed) return;
    const size = (bytes: number) => `${Math.ceil(bytes / MEBIBYTE)} MiB`;
    throw outOfSpace(store.place, `${size(free)} are free, ${size(needed)} are needed`);
  }
}
