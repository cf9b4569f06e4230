import { Failure } from "../../model/failure.ts";
import { type Named, NameIndex, splitType } from "../../model/name-index.ts";
import type { IndexType } from "../../model/stream-columns.ts";
import type { SnapshotStream } from "../../model/streams.ts";
import { formatDay, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import { seriesKinds } from "./series-kinds.ts";

/** An asset (as its GWA index), a market (as its MWA index), an LX index, an exchange, or a series of a snapshot stream. */
export interface NamedSeries {
  readonly id: string;
  /** Null for an exchange, and for a series of a snapshot stream. */
  readonly indexType: string | null;
  readonly name: string;
  /** Its only stream, if it has one: the ledger then knows its exchange. */
  readonly stream?: SnapshotStream;
  /** The exchange of that ledger; empty: all exchanges. */
  readonly ledgerId?: string;
}

/** A series with all its names. */
export interface KnownSeries extends NamedSeries, Named {
  /** Its key in the tables; null if the warehouse has nothing of it. */
  readonly key: number | null;
  readonly indexType: string | null;
}

type NameRow = Omit<KnownSeries, "labels"> & { readonly label: string | null };

/** The lookups know series of which the warehouse has no rows yet, and further names. */
const namesSql = `
  SELECT series AS key, index_id AS id, nullif(index_type, '') AS indexType, name, name AS label FROM series WHERE index_id <> ''
  UNION ALL SELECT NULL, id, 'GWA', symbol, symbol FROM assets
  UNION ALL SELECT NULL, id, 'GWA', symbol, name FROM assets
  UNION ALL SELECT NULL, id, 'MWA', pair, pair FROM markets
  UNION ALL SELECT NULL, id, NULL, name, name FROM exchanges`;

/** Such as `Kraken:BTC/USD`. There are thousands, so they are read only for a name with a colon. */
export const snapshotNamesSql = Object.entries(seriesKinds)
  .flatMap(([stream, { namesSql }]) =>
    namesSql === null ? [] : `SELECT *, NULL AS indexType, '${stream}' AS stream FROM (${namesSql})`,
  )
  .join(" UNION ALL ");

/** Everything that the warehouse knows by a name. */
export class KnownNames {
  readonly #connection: Connection;
  readonly #plain: NameIndex<KnownSeries>;
  #snapshots: NameIndex<KnownSeries> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#plain = readIndex(connection, namesSql);
  }

  /** What the name may mean, and the index that knows it. Throws a Failure if it means nothing. */
  find(name: string, ofType?: IndexType) {
    const isPlain = !name.includes(":") || splitType(name).type !== undefined;
    const plain = this.#plain.find(name, ofType);
    if (isPlain || plain.length > 0) {
      if (plain.length > 0) return { found: plain, index: this.#plain };
      throw unknownSeries(name, this.#plain, ofType, this.#readSnapshots().suggestWhole(name));
    }
    const snapshots = this.#readSnapshots();
    const index = snapshots.isEmpty ? this.#plain : snapshots;
    const found = snapshots.find(name);
    if (found.length === 0) throw unknownSeries(name, index);
    return { found, index };
  }

  #readSnapshots(): NameIndex<KnownSeries> {
    this.#snapshots ??= readIndex(this.#connection, snapshotNamesSql);
    return this.#snapshots;
  }
}

function readIndex(connection: Connection, sql: string): NameIndex<KnownSeries> {
  const known = new Map<string, KnownSeries & { readonly labels: string[] }>();
  for (const { label, ...row } of connection.rows<NameRow>(sql)) {
    const id = row.stream ? `${row.stream} ${row.key}` : `${row.indexType} ${row.id}`;
    const named = known.get(id) ?? { ...row, name: row.name ?? row.id, labels: [] };
    known.set(id, named);
    if (label !== null && !named.labels.includes(label)) named.labels.push(label);
  }
  const firstDays = new Map<KnownSeries, string | undefined>();
  return new NameIndex<KnownSeries>(known.values(), (named) => {
    if (!firstDays.has(named)) firstDays.set(named, readDays(connection, named)?.first);
    return firstDays.get(named);
  });
}

const daysSql = `SELECT min(ts) AS first, max(ts) AS last FROM
    (SELECT min(ts) AS ts FROM daily_bar_rows WHERE series = @key UNION ALL SELECT max(ts) FROM daily_bar_rows WHERE series = @key
      UNION ALL SELECT min(ts) FROM kept_bars WHERE series = @key UNION ALL SELECT max(ts) FROM kept_bars WHERE series = @key)`;

/** The first and the last day with rows; undefined if there is none. */
function readDays(connection: Connection, { key, stream }: KnownSeries) {
  if (key === null || stream !== undefined) return undefined;
  const found = connection.findRow<{ first: Micros | null; last: Micros | null }>(daysSql, { key });
  if (!found || found.first === null || found.last === null) return undefined;
  return { first: formatDay(found.first), last: formatDay(found.last) };
}

/** The series that the names mean. `ambiguous`: names of several series, all of which are found. */
export function resolveNames(connection: Connection, names: readonly string[]) {
  const known = new KnownNames(connection);
  const all = names.map((name) => ({ name, found: known.find(name).found }));
  return {
    found: [...new Set(all.flatMap(({ found }) => found))],
    ambiguous: all.flatMap(({ name, found }) => (found.length > 1 ? [name] : [])),
  };
}

function unknownSeries(name: string, index: NameIndex<KnownSeries>, ofType?: IndexType, whole?: string) {
  if (index.isEmpty) {
    return new Failure(`the warehouse has no series yet: ${name} is unknown`, {
      code: "nothing_synced",
      remedy: "run `mds-sync backfill` first",
    });
  }
  const suggestion = whole ?? index.suggest(name, ofType);
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
    const days = readDays(connection, named);
    const spare = named.stream ?? "no rows";
    const known = [asset?.name, asset?.status, days ? `${days.first} to ${days.last}` : spare];
    return `${index.distinguish(named, choices)} (${known.filter((text) => text).join(", ")})`;
  });
}
