import { Failure } from "../../model/failure.ts";
import { type Named, NameIndex } from "../../model/name-index.ts";
import type { IndexType } from "../../model/stream-columns.ts";
import { formatDay, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

/** An asset (as its GWA index), a market (as its MWA index), an LX index, or an exchange. */
export interface NamedSeries {
  readonly id: string;
  /** Null for an exchange. */
  readonly indexType: string | null;
  readonly name: string;
}

/** A series with all its names. */
export interface KnownSeries extends NamedSeries, Named {
  /** Its key in the tables; null if the warehouse has nothing of it. */
  readonly key: number | null;
  readonly indexType: string | null;
}

interface NameRow extends Omit<KnownSeries, "labels"> {
  readonly label: string | null;
}

/** The lookups know series of which the warehouse has no rows yet, and further names. */
const namesSql = `
  SELECT series AS key, index_id AS id, nullif(index_type, '') AS indexType, name, name AS label FROM series WHERE index_id <> ''
  UNION ALL SELECT NULL, id, 'GWA', symbol, symbol FROM assets
  UNION ALL SELECT NULL, id, 'GWA', symbol, name FROM assets
  UNION ALL SELECT NULL, id, 'MWA', pair, pair FROM markets
  UNION ALL SELECT NULL, id, NULL, name, name FROM exchanges`;

/** Everything that the warehouse knows by a name. */
export function readNames(connection: Connection): NameIndex<KnownSeries> {
  const known = new Map<string, KnownSeries & { readonly labels: string[] }>();
  for (const { label, ...row } of connection.rows<NameRow>(namesSql)) {
    const id = `${row.indexType} ${row.id}`;
    const named = known.get(id) ?? { ...row, name: row.name ?? row.id, labels: [] };
    known.set(id, named);
    if (label !== null && !named.labels.includes(label)) named.labels.push(label);
  }
  const firstDays = new Map<KnownSeries, string | undefined>();
  return new NameIndex<KnownSeries>(known.values(), (named) => {
    if (!firstDays.has(named)) firstDays.set(named, readDays(connection, named.key)?.first);
    return firstDays.get(named);
  });
}

const daysSql = `SELECT min(ts) AS first, max(ts) AS last FROM
    (SELECT min(ts) AS ts FROM daily_bar_rows WHERE series = @key UNION ALL SELECT max(ts) FROM daily_bar_rows WHERE series = @key
      UNION ALL SELECT min(ts) FROM kept_bars WHERE series = @key UNION ALL SELECT max(ts) FROM kept_bars WHERE series = @key)`;

/** The first and the last day with rows; undefined if there is none. */
function readDays(connection: Connection, key: number | null): { first: string; last: string } | undefined {
  if (key === null) return undefined;
  const found = connection.findRow<{ first: Micros | null; last: Micros | null }>(daysSql, { key });
  if (!found || found.first === null || found.last === null) return undefined;
  return { first: formatDay(found.first), last: formatDay(found.last) };
}

/** The series that the names mean. `ambiguous`: names of several series, all of which are found. */
export function resolveNames(
  connection: Connection,
  names: readonly string[],
): { readonly found: readonly NamedSeries[]; readonly ambiguous: readonly string[] } {
  const index = readNames(connection);
  const all = names.map((name) => ({ name, found: index.find(name) }));
  for (const { name, found } of all) if (found.length === 0) throw unknownSeries(name, index);
  return {
    found: [...new Set(all.flatMap(({ found }) => found))],
    ambiguous: all.flatMap(({ name, found }) => (found.length > 1 ? [name] : [])),
  };
}

export function unknownSeries(name: string, index: NameIndex<KnownSeries>, ofType?: IndexType): Failure {
  if (index.isEmpty) {
    return new Failure(`the warehouse has no series yet: ${name} is unknown`, {
      code: "nothing_synced",
      remedy: "run `mds-sync backfill` first",
    });
  }
  const suggestion = index.suggest(name, ofType);
  return new Failure(`the warehouse has no series ${name}`, {
    code: "unknown_series",
    remedy: suggestion
      ? `did you mean ${suggestion}?`
      : "give the id, symbol, pair or name of one that the service lists",
  });
}

const assetSql = "SELECT name, lower(status) AS status FROM assets WHERE id = ?";

/** How to name each of several series that share a name, and what each is: `LUNA@2022 (Terra, active, 2022-05-28 to 2026-11-16)`. */
export function describeChoices(
  connection: Connection,
  index: NameIndex<KnownSeries>,
  choices: readonly KnownSeries[],
): string[] {
  return choices.map((named) => {
    const asset = connection.findRow<{ name: string | null; status: string | null }>(assetSql, [named.id]);
    const days = readDays(connection, named.key);
    const known = [asset?.name, asset?.status, days ? `${days.first} to ${days.last}` : "no rows"];
    return `${index.tellApart(named, choices)} (${known.filter((text) => text).join(", ")})`;
  });
}
