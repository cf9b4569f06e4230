import { resolve } from "node:path";
import { errorCode } from "../model/failure.ts";
import { formatTimestamp, MICROS_PER_MS, type Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Log, silentLog } from "../runtime/log.ts";
import {
  choosePeriodUnit,
  closedBefore,
  exportPeriods,
  partitionColumn,
  periodOf,
  periodRange,
  storedRows,
} from "../warehouse/read/export-periods.ts";
import {
  coverageRelation,
  exportRelations,
  gapsRelation,
  inSnapshot,
  readLedger,
  readRelation,
} from "../warehouse/read/export-relations.ts";
import { compareStates, readExportedState } from "../warehouse/read/export-rows.ts";
import { openReader, toReaderFailure } from "../warehouse/reader.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import type { FileSystemInfo } from "../warehouse/sqlite/disk.ts";
import { citeState } from "../warehouse/tables/known-at.ts";
import { readClockSkew } from "../warehouse/tables/warehouse-state.ts";
import { columnsDigest, relationColumns, wholeRelations, writeCatalogue } from "./catalogue/catalogue.ts";
import {
  assertNoOnlyCopy,
  coverageRow,
  exportableClaims,
  gapRow,
  readPreviousClaims,
} from "./coverage-files.ts";
import { createCheckpointFormat } from "./delta/checkpoint.ts";
import { type CommitOptions, commitTable } from "./delta/delta-log.ts";
import type { DeltaTable } from "./delta/delta-table.ts";
import { asExportFailure, describeCleanUpFailure, exportStopped } from "./errors.ts";
import type { ExportStore } from "./export-store.ts";
import { FileWriter } from "./file-writer.ts";
import { openFolderStore } from "./folder-store.ts";
import { FILE_FORMAT, filePeriod, fileRange, type Manifest, type ManifestFile } from "./manifest.ts";
import { ParquetWriter } from "./parquet-writer.ts";
import { type Environment, isBucketUrl } from "./s3/s3-target.ts";
import { exportStreams, fileColumns } from "./stream-files.ts";

/** An export reaches each step once, in this order; `file stored` once per file, `table committed` once per relation. */
export type ExportStep =
  | "started"
  | "file stored"
  | "catalogue written"
  | "generation stored"
  | "table committed"
  | "catalogue switched"
  | "manifest switched"
  | "published"
  | "old generations removed";

export interface ExportProgress {
  /** Rows of the periods read so far, and of all periods. */
  readonly rows: number;
  readonly allRows: number;
}

export interface ExportOptions {
  readonly warehouse: string;
  /** A folder, or `s3://bucket/prefix`. */
  readonly to: string;
  /** For a bucket: its credentials, region and endpoint. */
  readonly env?: Environment | undefined;
  /** The export does not read the files before the one of this timestamp; it reuses those of the previous export. */
  readonly since?: Micros | undefined;
  /** Shows an earlier state on the connection that is exported. */
  readonly showState?: ((connection: Connection) => void) | undefined;
  /** How long files that this export replaces stay for readers that hold no lock; an hour by default, a day in a bucket. */
  readonly keep?: Micros | undefined;
  /** The program's version, for the manifest. */
  readonly program: string;
  readonly clock: Pick<Clock, "now" | "monotonic" | "sleep">;
  readonly log?: Log;
  readonly stopping?: AbortSignal | undefined;
  readonly onProgress?: (progress: ExportProgress) => void;
  readonly onStep?: (step: ExportStep) => void;
  /** For tests of a full disk. */
  readonly fileSystem?: FileSystemInfo | undefined;
}

export interface ExportResult
  extends Pick<Manifest, "warehouse" | "known_at" | "exported_at" | "rows" | "bytes"> {
  readonly folder: string;
  readonly files: number;
  readonly files_written: number;
  readonly rows_written: number;
  readonly bytes_written: number;
  /** The files of months, years or days that have changed. */
  readonly months_written: readonly string[];
  readonly seconds: number;
  /** A failure after the export was complete. */
  readonly warning?: string;
}

/**
 * Writes what changed since the previous export, then switches to it atomically. A kill at any time leaves the previous
 * export intact, and the next export removes the leftovers. It reads while a writer runs, with one snapshot per file
 * (docs/decisions/wal.md).
 */
export async function exportWarehouse(options: ExportOptions): Promise<ExportResult> {
  const connection = openReader(options.warehouse);
  const target = isBucketUrl(options.to) ? options.to : resolve(options.to);
  try {
    options.showState?.(connection);
    const store = isBucketUrl(target) ? await openBucket(target, options) : openFolderStore(target);
    try {
      return await exportTo(store, connection, options);
    } catch (error) {
      await store.removeLeftovers();
      throw error;
    } finally {
      await store.close();
    }
  } catch (error) {
    if (options.stopping?.aborted && error === options.stopping.reason) throw exportStopped(target);
    throw errorCode(error).startsWith("SQLITE_")
      ? toReaderFailure(error, options.warehouse)
      : asExportFailure(error, target);
  } finally {
    connection.close();
  }
}

/** Loads the HTTP client only for a bucket: that takes longer than to open DuckDB. */
async function openBucket(to: string, options: ExportOptions): Promise<ExportStore> {
  const { openS3Store } = await import("./s3/s3-store.ts");
  return openS3Store({ ...options, to, env: options.env ?? {} });
}

async function exportTo(
  store: ExportStore,
  connection: Connection,
  options: ExportOptions,
): Promise<ExportResult> {
  const { clock, log = silentLog, onStep = () => {} } = options;
  const { place, work } = store;
  const startedAt = clock.monotonic();
  const writer = await ParquetWriter.open(work);
  try {
    onStep("started");
    const previous = previousExport(store, connection);
    const allRows = storedRows(connection);
    let rowsRead = 0;
    const fileWriter = new FileWriter({
      connection,
      writer,
      store,
      previous,
      fileSystem: options.fileSystem,
      onRows(count) {
        if (options.stopping?.aborted) throw exportStopped(place);
        rowsRead += count;
        options.onProgress?.({ rows: rowsRead, allRows });
      },
      onFile({ path, rows, bytes }) {
        log.debug({ path, rows, bytes }, "file exported");
        onStep("file stored");
      },
    });
    const since = effectiveSince(store, previous, options.since);
    if (since !== options.since) log.warn({ place }, "previous export unusable, exporting everything");
    // Read the ledger first: all rows that it covers now are among the rows that are read later.
    const start = await readStart(connection);
    await assertNoOnlyCopy(writer, store, start.ledger);
    await writeFiles(fileWriter, start, since);
    // What this export did not read is known from the previous one.
    const isNewest = connection.knownAt === undefined;
    const state = since === undefined && isNewest ? start.state : previous?.state;
    const manifest = { ...manifestOf(store, fileWriter.files, connection, { ...options, since }), state };
    if (store.catalogue !== undefined) {
      const { clockSkew } = start;
      await writeCatalogue(store.catalogue, manifest.files, { ...start.state, clockSkew, folder: place });
      onStep("catalogue written");
    }
    if (options.stopping?.aborted) throw exportStopped(place);
    await store.storeGeneration(manifest);
    onStep("generation stored");
    const keep = options.keep ?? store.defaultKeep;
    let warning: string | undefined;
    const cleanUp = async (work: () => Promise<void>) => {
      try {
        await work();
      } catch (error) {
        if (options.stopping?.aborted) throw error;
        warning = describeCleanUpFailure(error, place);
      }
    };
    const tables = await commitTables(store, manifest, {
      checkpoints: createCheckpointFormat(writer, work),
      program: options.program,
      generation: manifest.generation,
      isNewer: store.isNewer,
      now: Math.round(clock.now()),
      keepMs: keep / MICROS_PER_MS,
      cleanUp,
      onCommit: () => onStep("table committed"),
    });
    await store.publish({ ...manifest, tables }, onStep);
    await cleanUp(() => store.removeOld(manifest, { now: clock.now() * MICROS_PER_MS, keep }));
    onStep("old generations removed");
    const { warehouse, known_at, exported_at, files, rows, bytes } = manifest;
    const { written } = fileWriter;
    return {
      folder: place,
      warehouse,
      ...(known_at !== undefined && { known_at }),
      exported_at,
      files: files.length,
      rows,
      bytes,
      files_written: written.length,
      rows_written: sum(written, (file) => file.rows),
      bytes_written: sum(written, (file) => file.bytes),
      months_written: written.filter(({ relation }) => isStream(relation)).map(({ path }) => path),
      seconds: Math.round(clock.monotonic() - startedAt) / 1000,
      ...(warning !== undefined && { warning }),
    };
  } finally {
    writer.close();
  }
}

/**
 * Commits a version of each relation's table that has changed. Coverage and gaps come last, so that the newest coverage
 * never claims rows that the newest version of a table lacks.
 */
async function commitTables(
  store: ExportStore,
  { files }: Manifest,
  { onCommit, ...options }: CommitOptions & { readonly onCommit: () => void },
): Promise<Record<string, number>> {
  const of = (relation: string) => files.filter((file) => file.relation === relation);
  const deltaTables: DeltaTable[] = [
    ...exportStreams.map((stream) => ({
      relation: stream,
      columns: fileColumns(stream),
      partitionColumn: partitionColumn(stream),
      files: of(stream),
    })),
    ...wholeRelations.map((relation) => ({
      relation: relation.name,
      columns: relationColumns(relation),
      partitionColumn: undefined,
      files: of(relation.name),
    })),
  ];
  const versions: Record<string, number> = {};
  for (const table of deltaTables) {
    versions[table.relation] = await commitTable(store.tableLog(table.relation), table, options);
    onCommit();
  }
  return versions;
}

/** The previous export, if its warehouse and columns are the same, and both have the newest state: then this export may reuse its files. */
function previousExport({ previous }: ExportStore, { path, knownAt }: Connection): Manifest | undefined {
  const isContinued =
    previous?.format === FILE_FORMAT &&
    previous.warehouse === path &&
    previous.columns === columnsDigest() &&
    !knownAt &&
    !previous.known_at;
  return isContinued ? previous : undefined;
}

/**
 * Returns `since`, or undefined if the folder contains an export that this one cannot continue: skipping the files
 * before `since` would then remove them from the export.
 */
function effectiveSince(
  store: ExportStore,
  previous: Manifest | undefined,
  since: Micros | undefined,
): Micros | undefined {
  if (since === undefined || (!previous && !store.isUsed)) return since;
  const reused = previous?.files.filter(
    (file) => file.relation === coverageRelation.name || fileRange(file).to <= since,
  );
  return reused?.every((file) => store.hasFile(file)) ? since : undefined;
}

/** What one snapshot says before the first file is written. */
function readStart(connection: Connection) {
  return inSnapshot(connection, () => ({
    ledger: readLedger(connection),
    // Read before the rows: what changes later is exported again the next time.
    state: readExportedState(connection),
    clockSkew: readClockSkew(connection),
  }));
}

async function writeFiles(
  fileWriter: FileWriter,
  { ledger, state }: Awaited<ReturnType<typeof readStart>>,
  since: Micros | undefined,
): Promise<void> {
  const { connection, writer, store, previous } = fileWriter.options;
  const readSince = new Map<string, Micros>();
  const isUnchanged = compareStates(connection, previous?.state, state);
  for (const stream of exportStreams) {
    const unit = choosePeriodUnit(connection, stream);
    const earlier = previous?.files.filter(({ relation }) => relation === stream) ?? [];
    const hasSameUnit = earlier.every((file) => filePeriod(file).unit === unit);
    const from =
      since === undefined || unit === "whole" || !hasSameUnit
        ? undefined
        : periodRange(periodOf(unit, since)).from;
    if (from !== undefined) {
      readSince.set(stream, from);
      for (const file of earlier) if (fileRange(file).to <= from) fileWriter.reusePrevious(file);
    }
    const closed = closedBefore(connection, stream);
    for (const period of exportPeriods(connection, stream, unit, { since: from, closedBefore: closed }))
      await fileWriter.writePeriod(period, isUnchanged(period));
  }
  for (const relation of exportRelations)
    await fileWriter.writeRelation(relation, [...readRelation(connection, relation)]);
  const after = await inSnapshot(connection, () => readLedger(connection));
  const earlier =
    readSince.size === 0
      ? undefined
      : {
          readSince: (stream: string) => readSince.get(stream),
          claims: await readPreviousClaims(writer, store, previous),
        };
  const { coverage, gaps } = exportableClaims(ledger, after.coverage, earlier);
  await fileWriter.writeRelation(coverageRelation, coverage.map(coverageRow));
  await fileWriter.writeRelation(gapsRelation, gaps.map(gapRow));
}

function manifestOf(
  store: ExportStore,
  files: readonly ManifestFile[],
  connection: Connection,
  { program, clock, since }: ExportOptions,
): Manifest {
  const exportedAt = formatTimestamp(Math.round(clock.now() * MICROS_PER_MS));
  return {
    format: FILE_FORMAT,
    columns: columnsDigest(),
    program,
    warehouse: connection.path,
    ...(connection.knownAt && { known_at: citeState(connection) }),
    generation: store.nameGeneration(exportedAt),
    exported_at: exportedAt,
    since: since === undefined ? null : periodOf("month", since),
    rows: sum(files, ({ rows }) => rows),
    bytes: sum(files, ({ bytes }) => bytes),
    files,
  };
}

const isStream = (relation: string) => exportStreams.some((stream) => stream === relation);

function sum(files: readonly ManifestFile[], of: (file: ManifestFile) => number): number {
  return files.reduce((total, file) => total + of(file), 0);
}
