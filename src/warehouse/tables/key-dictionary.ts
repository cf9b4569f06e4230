import type { Connection } from "../sqlite/connection.ts";

/**
 * Maps the service's identifiers to small integer keys and caches them. Clear it after a rollback, which removes new
 * keys.
 */
export class KeyDictionary {
  readonly #connection: Connection;
  readonly #series = new Map<string, Map<string, number>>();
  readonly #names = new Map<number, string>();
  readonly #listings = new Map<string, Map<string, number>>();
  readonly #contracts = new Map<string, Map<string, number>>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The key of an index; inserts a new one if needed. */
  getSeriesKey(indexType: string, indexId: string): number {
    return getOrCreate(this.#series, indexType, indexId, () => {
      const sql = `INSERT INTO series (index_type, index_id, name) VALUES (@indexType, @indexId, ${seriesNameSql})`;
      return this.findSeriesKey(indexType, indexId) ?? this.#insert(sql, { indexType, indexId });
    });
  }

  /** Stores a name that is not from a lookup: no lookup lists LX indices, only their records name them. */
  nameSeries(series: number, name: string): void {
    if (this.#names.get(series) === name) return;
    const differs = "(name <> ? OR name_from IS NOT NULL)";
    const sql = `UPDATE series SET name = ?, name_from = NULL WHERE series = ? AND ${differs}`;
    this.#connection.run(sql, [name, series, name]);
    this.#names.set(series, name);
  }

  /** Stores a name that was concluded from a price, unless the series has a name. */
  nameSeriesByPrice(series: number, name: string): void {
    const sql = "UPDATE series SET name = ?, name_from = 'price' WHERE series = ? AND name = index_id";
    this.#connection.run(sql, [name, series]);
  }

  /** The key of a snapshot stream's subscription: to one exchange, or to everything (null). */
  getSubscriptionKey(exchangeId: string | null): number {
    return this.getSeriesKey("", exchangeId ?? "");
  }

  findSeriesKey(indexType: string, indexId: string): number | undefined {
    const sql = "SELECT series FROM series WHERE index_type = ? AND index_id = ?";
    return this.#connection.findValue<number>(sql, [indexType, indexId]);
  }

  getListingKey(exchangeId: string, marketId: string): number {
    return getOrCreate(this.#listings, exchangeId, marketId, () => {
      const find = "SELECT listing FROM listings WHERE exchange_id = ? AND market_id = ?";
      const insert = `INSERT INTO listings (exchange_id, market_id, exchange, pair) VALUES (@exchangeId, @marketId, ${listingNamesSql})`;
      const known = this.#connection.findValue<number>(find, [exchangeId, marketId]);
      return known ?? this.#insert(insert, { exchangeId, marketId });
    });
  }

  /** The key of a contract; inserts a stub for one that the lookup has not described yet. */
  getContractKey(
    derivativeType: string,
    id: string,
    stub: { exchangeId: string | null; marketId: string | null; firstSeen: string },
  ): number {
    return getOrCreate(this.#contracts, derivativeType, id, () => {
      const find = "SELECT contract FROM contracts WHERE derivative_type = ? AND id = ?";
      const insert = `INSERT INTO contracts (derivative_type, id, exchange_id, market_id, exchange, pair, is_described, first_seen, absences)
        VALUES (@derivativeType, @id, @exchangeId, @marketId, ${listingNamesSql}, 0, @firstSeen, 0)`;
      const known = this.#connection.findValue<number>(find, [derivativeType, id]);
      return known ?? this.#insert(insert, { derivativeType, id, ...stub });
    });
  }

  clear(): void {
    this.#series.clear();
    this.#names.clear();
    this.#listings.clear();
    this.#contracts.clear();
  }

  #insert(sql: string, values: unknown): number {
    return Number(this.#connection.statement(sql).run(values).lastInsertRowid);
  }
}

/** The readable name of an index; the id while the lookups have none. */
const seriesNameSql = `coalesce(CASE @indexType
  WHEN 'GWA' THEN (SELECT symbol FROM assets WHERE id = @indexId)
  WHEN 'MWA' THEN (SELECT pair FROM markets WHERE id = @indexId)
  WHEN '' THEN (SELECT name FROM exchanges WHERE id = @indexId) END, @indexId)`;

/** The names of an exchange and of a market; the ids while they are unknown. */
const listingNamesSql = `coalesce((SELECT name FROM exchanges WHERE id = @exchangeId), @exchangeId),
  coalesce((SELECT pair FROM markets WHERE id = @marketId), @marketId)`;

function getOrCreate(
  map: Map<string, Map<string, number>>,
  first: string,
  second: string,
  create: () => number,
): number {
  const inner = map.get(first) ?? new Map<string, number>();
  const known = inner.get(second);
  if (known !== undefined) return known;
  const key = create();
  map.set(first, inner.set(second, key));
  return key;
}
