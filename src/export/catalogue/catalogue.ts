import { createHash } from "node:crypto";
import type { Column } from "../../model/column.ts";
import { quoteName, quoteText } from "../../model/sql-text.ts";
import { isDaily, type RowStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { partitionColumn } from "../../warehouse/read/export-periods.ts";
import {
  coverageRelation,
  type ExportRelation,
  exportRelations,
  gapsRelation,
  type RelationColumnKind,
} from "../../warehouse/read/export-relations.ts";
import { sharedNamesView } from "../../warehouse/views/coverage-views.ts";
import { liveColumns, MAX_AHEAD_MICROS } from "../../warehouse/views/data-views.ts";
import { CATALOGUE, type ManifestFile } from "../manifest.ts";
import { openDuckDb } from "../parquet-writer.ts";
import { decimalsOf, exportStreams, fileColumns } from "../stream-files.ts";
import { barMacro, catalogueBarViews, catalogueComparisonViews } from "./comparison-views.ts";
import { duckDbDialect } from "./duckdb-dialect.ts";
import { catalogueResearchViews } from "./research-views.ts";

/** The relations that an export writes as one file each. */
export const wholeRelations: readonly ExportRelation[] = [...exportRelations, coverageRelation, gapsRelation];

const storedTypes: Readonly<Record<RelationColumnKind, string>> = {
  text: "VARCHAR",
  integer: "BIGINT",
  real: "DOUBLE",
  timestamp: "TIMESTAMP",
};

export function relationColumns({ columns }: ExportRelation): { name: string; type: string }[] {
  return Object.entries(columns).map(([name, kind]) => ({ name, type: storedTypes[kind] }));
}

/** Changes whenever the columns of an exported file change. */
export function columnsDigest(): string {
  const columns = [...exportStreams.map((stream) => fileColumns(stream)), ...wholeRelations];
  return createHash("sha256").update(JSON.stringify(columns)).digest("hex");
}

export interface CatalogueOptions {
  /** The absolute path of the export folder. */
  readonly folder: string;
  /** The time of the export by the service's clock. */
  readonly present: Micros;
  /** How far the service's clock is ahead of this machine's. */
  readonly clockSkew: Micros;
  readonly refreshPeriods: Readonly<Record<RowStream, Micros>>;
}

/**
 * Writes the DuckDB file whose views read the Parquet files. DuckDB binds each new view through all views below it down to
 * the files, which takes a second in all. So an empty temporary table with its columns hides each view that others read.
 */
export async function writeCatalogue(
  file: string,
  files: readonly ManifestFile[],
  options: CatalogueOptions,
): Promise<void> {
  const { folder, present } = options;
  const instance = await openDuckDb(file);
  const connection = await instance.connect();
  const create = (name: string, sql: string) => connection.run(`CREATE VIEW ${name} AS ${sql}`);
  /** Creates a temporary table without rows that has the columns of `sql`: it comes before the view of that name. */
  const createEmpty = async (name: string, sql: string) => {
    const described = (await connection.runAndReadAll(`DESCRIBE ${sql}`)).getRowsJS();
    const columns = described.map(([name, type]) => `${quoteName(String(name))} ${type}`).join(", ");
    await connection.run(`CREATE TEMP TABLE ${name} (${columns})`);
  };
  try {
    // The catalogue is in the work folder until it is complete, where `mds_folder()` would not find the files.
    await connection.run(`SET VARIABLE mds_export = ${quoteText(`${folder}/`)}`);
    // One transaction: DuckDB syncs its log at each commit.
    await connection.run("BEGIN");
    for (const macro of [folderMacro(folder), ...typeMacros]) await connection.run(macro);
    for (const [name, sql] of Object.entries(fileViews([], options))) await createEmpty(name, sql);
    const views = Object.entries(upperViews(options));
    const tableMacros = [asOfMacro, barMacro(present)];
    const isRead = (name: string) =>
      [...views.map(([, sql]) => sql), ...tableMacros].some((sql) => new RegExp(`\\b${name}\\b`).test(sql));
    for (const [name, sql] of views) {
      if (isRead(name)) await createEmpty(name, sql);
      await create(name, sql);
    }
    for (const macro of tableMacros) await connection.run(macro);
    for (const [name, sql] of Object.entries(fileViews(files, options))) await create(name, sql);
    for (const macro of [digitsMacro, decimalMacro]) await connection.run(macro);
    await connection.run("COMMIT; CHECKPOINT");
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/**
 * A view does not know the path of its own file, and relative paths depend on the reader's working directory. But the
 * default of DuckDB's setting `temp_directory` is beside the opened database, so the macro derives the folder from it,
 * even after the folder was moved. A catalogue that is attached to another database uses the folder where it was
 * written, unless the reader sets the variable `mds_export`.
 */
function folderMacro(folder: string): string {
  const temporary = "current_setting('temp_directory')";
  const end = `${CATALOGUE}.tmp`;
  return `CREATE MACRO mds_folder() AS coalesce(rtrim(CAST(getvariable('mds_export') AS VARCHAR), '/') || '/',
    CASE WHEN ${temporary} = ${quoteText(end)} OR suffix(${temporary}, ${quoteText(`/${end}`)})
      THEN left(${temporary}, length(${temporary}) - ${end.length}) ELSE ${quoteText(`${folder}/`)} END)`;
}

/** The digits of a DOUBLE of at most 15 significant digits, between 1e-7 and 1e15: docs/decisions/exact-decimals.md. */
const digitsMacro = `CREATE OR REPLACE MACRO exact_digits(x) AS CASE WHEN x = 0 THEN '0'
  WHEN abs(x) < 0.001 THEN rtrim(CAST(TRY_CAST(CAST(x AS VARCHAR) AS DECIMAL(38, 22)) AS VARCHAR), '0')
  ELSE regexp_replace(CAST(x AS VARCHAR), '\\.0$', '') END`;

/** Null if DECIMAL(38, 18) cannot hold the value exactly. */
const decimalMacro = `CREATE OR REPLACE MACRO exact_decimal(digits) AS CASE WHEN length(split_part(digits, '.', 2)) <= 18
  THEN TRY_CAST(digits AS DECIMAL(38, 18)) END`;

/** Only the types of those two, until all views are created: DuckDB binds a macro wherever it stands. */
const typeMacros = [
  "CREATE MACRO exact_digits(x) AS NULL::VARCHAR",
  "CREATE MACRO exact_decimal(digits) AS NULL::DECIMAL(38, 18)",
];

const asOfMacro = `CREATE MACRO index_ticks_as_of(moment) AS TABLE SELECT t.* FROM index_ticks t JOIN (
  SELECT index_type, index_id, max(ts) AS ts FROM index_ticks WHERE time <= CAST(moment AS TIMESTAMP) AND price IS NOT NULL GROUP BY ALL)
  USING (index_type, index_id, ts)`;

type Views = Readonly<Record<string, string>>;

/** The SQL of the views that read the files, by name. Without files they have no rows, and the same columns. */
function fileViews(files: readonly ManifestFile[], options: CatalogueOptions): Views {
  const { exchange_ticks: tickerPeriod } = options.refreshPeriods;
  const of = (relation: string) => files.filter((file) => file.relation === relation);
  const source = (stream: RowStream) => streamSource(stream, of(stream));
  const entries = [
    ...wholeRelations.map((relation) => [relation.name, wholeView(relation, of(relation.name))]),
    ...exportStreams.map((stream) => [stream, streamView(stream, source(stream), tickerPeriod)]),
    ["index_ticks_stored", `SELECT * FROM ${source("index_ticks")}`],
  ];
  return Object.fromEntries(entries);
}

/** The SQL of the views that read other views, by name; a view reads only those before it. */
function upperViews(options: CatalogueOptions): Views {
  const latest = exportStreams.filter((stream) => !isDaily(stream));
  return {
    ...Object.fromEntries(latest.map((stream) => [`latest_${stream}`, latestView(stream, options)])),
    shared_names: sharedNamesView(duckDbDialect(options.present)),
    ...catalogueBarViews(options.present),
    ...catalogueComparisonViews(options.present),
    ...catalogueResearchViews(options.present, options.refreshPeriods.exchange_ticks),
  };
}

function wholeView(relation: ExportRelation, files: readonly ManifestFile[]): string {
  const names = relationColumns(relation).map(({ name }) => quoteName(name));
  // These relations are small, so their files store the `_exact` columns.
  const decimals = names.flatMap((name) =>
    name.endsWith('_exact"') ? [`exact_decimal(${name}) AS ${name.replace("_exact", "_decimal")}`] : [],
  );
  const source = files.length > 0 ? parquetSource(files) : emptySource(relationColumns(relation));
  return `SELECT ${[...names, ...decimals].join(", ")} FROM ${source}`;
}

function streamColumns(stream: RowStream): readonly Column[] {
  return streamTable[stream].columns;
}

/** Each nested macro is bound anew wherever it stands: the inner select names the exact texts once. */
function streamView(stream: RowStream, source: string, tickerPeriod: Micros): string {
  const decimals = new Set(decimalsOf(stream));
  const columns = fileColumns(stream).flatMap(({ name }) => {
    if (name.endsWith("_digits") || name === "repeats_price") return [];
    if (name === "day")
      return [name, "epoch_us(CAST(day AS TIMESTAMP)) AS ts", "CAST(day AS TIMESTAMP) AS time"];
    if (name === "last_moved") return [name, ...staleness(tickerPeriod)];
    if (!decimals.has(name)) return [quoteName(name)];
    return [name, `${name}_exact`, `exact_decimal(${name}_exact) AS ${name}_decimal`];
  });
  // The files do not contain the partition column: insert it at its position among the columns of the stream.
  const at = streamColumns(stream).findIndex(({ isPartition }) => isPartition);
  if (at >= 0) columns.splice(at, 0, partitionColumn(stream) as string);
  const exact = [...decimals].map(
    (name) => `coalesce(${name}_digits, exact_digits(${name})) AS ${name}_exact`,
  );
  return `SELECT ${columns.join(", ")} FROM (SELECT ${["*", ...exact].join(", ")} FROM ${source})`;
}

/**
 * The seconds since the price last moved at the exchange, and whether that exceeds the refresh period. If the service
 * does not send `last_moved`, a ticker is stale if it repeats the price of the previous one.
 */
function staleness(tickerPeriod: Micros): string[] {
  const unmoved = "(ts - epoch_us(last_moved))";
  return [
    `${unmoved} / 1000000 AS unmoved_seconds`,
    `CASE WHEN last_moved IS NULL THEN repeats_price ELSE ${unmoved} > ${tickerPeriod} END AS is_stale`,
  ];
}

function streamSource(stream: RowStream, files: readonly ManifestFile[]): string {
  const partition = partitionColumn(stream);
  const names = Object.keys(files[0]?.partition ?? (partition ? { [partition]: "" } : {}));
  const folders = names.map((name) => ({ name, type: "VARCHAR" }));
  if (files.length === 0) return emptySource([...folders, ...fileColumns(stream)]);
  const types = folders.map(({ name, type }) => `'${name}': ${type}`).join(", ");
  return parquetSource(
    files,
    folders.length === 0 ? "" : `, hive_partitioning = true, hive_types = {${types}}`,
  );
}

function parquetSource(files: readonly ManifestFile[], options = ""): string {
  const paths = files.map(({ version }) => `mds_folder() || ${quoteText(version)}`);
  return `read_parquet([${paths.join(", ")}]${options})`;
}

function emptySource(columns: readonly { name: string; type: string }[]): string {
  return `(SELECT ${columns.map(({ name, type }) => `NULL::${type} AS ${quoteName(name)}`).join(", ")} WHERE false)`;
}

function latestView(stream: RowStream, { present, clockSkew, refreshPeriods }: CatalogueOptions): string {
  const identity = streamColumns(stream).filter(({ reading }) => reading === "identity");
  const series = identity.map(({ name }) => name).join(", ");
  const isPlausible = `ts < ${present + MAX_AHEAD_MICROS}`;
  const hasContracts = streamTable[stream].dictionary === "contracts";
  const contracts = hasContracts
    ? "LEFT JOIN derivative_contracts c ON c.id = t.contract_id AND c.derivative_type = t.derivative_type"
    : "";
  const newestOfStream = `(SELECT max(ts) FROM ${stream} WHERE ${isPlausible})`;
  const live = liveColumns(duckDbDialect(present), stream, newestOfStream, {
    ts: "t.ts",
    now: `(epoch_us(now()) + ${clockSkew})`,
    period: String(refreshPeriods[stream]),
    expirationTs: "epoch_us(c.expiration)",
  });
  return `SELECT t.*, ${live}
  FROM ${stream} t JOIN (
    SELECT ${series}, max(ts) AS ts FROM ${stream} WHERE ${isPlausible} GROUP BY ALL) USING (${series}, ts) ${contracts}`;
}
