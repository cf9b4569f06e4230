import { findClosestWord } from "../../model/did-you-mean.ts";
import { exitCode, Failure } from "../../model/failure.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SeriesInfo } from "../rows.ts";

/** A series with its key in the tables; null if the warehouse has nothing of it. */
export interface KeyedSeries extends SeriesInfo {
  readonly key: number | null;
}

/** A series with all its names. */
interface KnownSeries extends KeyedSeries {
  readonly labels: readonly string[];
}

interface NameRow {
  readonly index_type: string;
  readonly index_id: string;
  readonly label: string | null;
}

const seriesSql = `SELECT s.series AS key, s.index_type, s.index_id, s.name,
  ${storedColumns("main.", "s.series")}
FROM series s WHERE s.index_type <> '' ORDER BY s.index_type, s.name, s.index_id`;

/** The same of one series, of the state that is shown. */
const shownSql = `SELECT ${storedColumns("", "@key")}`;

function storedColumns(schema: "" | "main.", key: string): string {
  return `(EXISTS (SELECT 1 FROM ${schema}index_tick_rows t WHERE t.series = ${key})
    OR EXISTS (SELECT 1 FROM ${schema}settled_ranges g WHERE g.stream = 'index_ticks' AND g.series = ${key}
      AND g.proof = 'moved')) AS has_ticks,
  EXISTS (SELECT 1 FROM ${schema}daily_bar_rows b WHERE b.series = ${key}) AS has_ohlcv`;
}

/** The lookups know series of which the warehouse has no rows yet, and further names. */
const lookupNamesSql = `SELECT 'GWA' AS index_type, id AS index_id, symbol AS label FROM assets
  UNION ALL SELECT 'GWA', id, name FROM assets
  UNION ALL SELECT 'MWA', id, pair FROM markets`;

/** Every series of which the warehouse has ticks or daily bars. */
export function readSeries(connection: Connection): SeriesInfo[] {
  return connection
    .statement<KeyedSeries>(seriesSql)
    .all()
    .filter(({ has_ticks, has_ohlcv }) => has_ticks || has_ohlcv)
    .map(({ key: _, ...series }) => series);
}

/**
 * Resolves ids, symbols, pairs and names, each optionally with its index type (`GWA:BTC`). If several series share a name,
 * the only one with rows is meant; otherwise a Failure lists them.
 */
export function resolveSeries(
  connection: Connection,
  names: readonly string[],
  indexType?: string,
): KeyedSeries[] {
  if (names.length === 0) throw usage("no series is given", "name one, such as BTC, BTC/USD or BLX");
  const type = indexType === undefined ? undefined : readIndexType(indexType);
  const known = readKnownSeries(connection);
  if (known.length === 0) {
    throw new Failure(`the warehouse has no series yet: ${names.join(", ")} is unknown`, {
      code: "nothing_synced",
      remedy: "run `mds-sync backfill` first",
      exit: exitCode.incomplete,
    });
  }
  const resolved = names.map((name) => resolveName(known, name, type));
  // The same series under two names would appear twice.
  const all = [
    ...new Map(resolved.map((series) => [`${series.index_type} ${series.index_id}`, series])).values(),
  ];
  if (connection.knownAt === undefined) return all;
  const read = connection.statement<Pick<SeriesInfo, "has_ticks" | "has_ohlcv">>(shownSql);
  return all.map((series) =>
    series.key === null ? series : { ...series, ...read.get({ key: series.key }) },
  );
}

function readKnownSeries(connection: Connection): KnownSeries[] {
  const known = new Map<string, KnownSeries & { labels: string[] }>();
  for (const series of connection.statement<KeyedSeries>(seriesSql).all())
    known.set(`${series.index_type} ${series.index_id}`, { ...series, labels: [series.name] });
  for (const { index_type, index_id, label } of connection.statement<NameRow>(lookupNamesSql).all()) {
    if (label === null) continue;
    const id = `${index_type} ${index_id}`;
    const series = known.get(id);
    if (series) series.labels.push(label);
    else {
      const unstored = { key: null, has_ticks: 0, has_ohlcv: 0 } as const;
      known.set(id, { index_type, index_id, name: label, ...unstored, labels: [label] });
    }
  }
  return [...known.values()];
}

function resolveName(known: readonly KnownSeries[], given: string, type: IndexType | undefined): KeyedSeries {
  const [, prefix, rest] = /^(GWA|MWA|LX):(.+)$/i.exec(given) ?? [];
  const wantedType = prefix === undefined ? type : readIndexType(prefix);
  const name = rest ?? given;
  const candidates = known.filter(({ index_type }) => wantedType === undefined || index_type === wantedType);
  const folded = name.toLowerCase();
  const found = firstMatches(candidates, [
    ({ index_id }) => index_id === name,
    (series) => series.name === name,
    ({ labels }) => labels.includes(name),
    ({ labels }) => labels.some((label) => label.toLowerCase() === folded),
  ]);
  const [only, second] = found;
  if (only === undefined) throw unknownSeries(given, name, candidates, known);
  if (second === undefined) return withoutLabels(only);
  const stored = found.filter(({ has_ticks, has_ohlcv }) => has_ticks || has_ohlcv);
  if (stored.length === 1 && stored[0]) return withoutLabels(stored[0]);
  const choices = (stored.length > 0 ? stored : found).map(
    (series) => `${series.index_type}:${series.index_id}`,
  );
  throw new Failure(`${given} is the name of ${choices.length} series`, {
    code: "unknown_series",
    remedy: `give ${choices.slice(0, 5).join(" or ")}`,
    exit: exitCode.usage,
  });
}

/** What the first condition with any match selects. */
function firstMatches(
  candidates: readonly KnownSeries[],
  conditions: readonly ((series: KnownSeries) => boolean)[],
): KnownSeries[] {
  for (const condition of conditions) {
    const found = candidates.filter(condition);
    if (found.length > 0) return found;
  }
  return [];
}

function unknownSeries(
  given: string,
  name: string,
  candidates: readonly KnownSeries[],
  known: readonly KnownSeries[],
): Failure {
  const ofOtherType = known.find(({ labels }) => labels.includes(name));
  const closest = findClosestWord(
    name,
    candidates.flatMap(({ labels }) => labels),
  );
  const suggestion = ofOtherType ? `${ofOtherType.index_type}:${name}` : closest;
  return new Failure(`the warehouse has no series ${given}`, {
    code: "unknown_series",
    remedy: suggestion
      ? `did you mean ${suggestion}?`
      : "give the id, symbol, pair or name of one that the service lists",
    exit: exitCode.usage,
  });
}

function withoutLabels({ labels: _, ...series }: KnownSeries): KeyedSeries {
  return series;
}

function readIndexType(text: string): IndexType {
  const type = indexTypes.find((known) => known === text.toUpperCase());
  if (type === undefined)
    throw usage(`there is no index type ${text}`, `give one of ${indexTypes.join(", ")}`);
  return type;
}

function usage(message: string, remedy: string): Failure {
  return new Failure(message, { code: "usage", remedy, exit: exitCode.usage });
}
