import type { Connection } from "../sqlite/connection.ts";

/**
 * The small integers that stand for the service's identifiers. Looked up once, then remembered; forgotten after a
 * rollback, since keys made in it are gone.
 */
export class Dictionary {
  readonly #connection: Connection;
  readonly #series = new Map<string, Map<string, number>>();
  readonly #names = new Map<number, string>();
  readonly #listings = new Map<string, Map<string, number>>();
  readonly #contracts = new Map<string, Map<string, number>>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The key of an index, made when new. */
  series(indexType: string, indexId: string): number {
    return remember(this.#series, indexType, indexId, () => {
      const known = this.findSeries(indexType, indexId);
      if (known !== undefined) return known;
      const name = this.#get(seriesName, { indexType, indexId }) ?? indexId;
      return this.#insert("INSERT INTO series (index_type, index_id, name) VALUES (?, ?, ?)", [
        indexType,
        indexId,
        name,
      ]);
    });
  }

  /** What the service calls an index that no lookup names: the LX ones. */
  nameSeries(series: number, name: string): void {
    if (this.#names.get(series) === name) return;
    this.#connection
      .statement("UPDATE series SET name = ? WHERE series = ? AND name <> ?")
      .run([name, series, name]);
    this.#names.set(series, name);
  }

  /** The key of a subscription of a latest-only stream: one exchange, or everything. */
  subscription(exchangeId: string | null): number {
    return this.series("", exchangeId ?? "");
  }

  findSeries(indexType: string, indexId: string): number | undefined {
    return this.#get("SELECT series FROM series WHERE index_type = ? AND index_id = ?", [
      indexType,
      indexId,
    ]) as number | undefined;
  }

  listing(exchangeId: string, marketId: string): number {
    return remember(this.#listings, exchangeId, marketId, () => {
      const known = this.#get("SELECT listing FROM listings WHERE exchange_id = ? AND market_id = ?", [
        exchangeId,
        marketId,
      ]);
      if (known !== undefined) return known as number;
      return this.#insert(
        `INSERT INTO listings (exchange_id, market_id, exchange, pair) VALUES (@exchangeId, @marketId,
          coalesce((SELECT name FROM exchanges WHERE id = @exchangeId), @exchangeId), coalesce((SELECT pair FROM markets WHERE id = @marketId), @marketId))`,
        { exchangeId, marketId },
      );
    });
  }

  /** The key of a contract; one that the lookup has not described yet is kept as a stub. */
  contract(
    derivativeType: string,
    id: string,
    stub: { exchangeId: string | null; marketId: string | null; firstSeen: string },
  ): number {
    return remember(this.#contracts, derivativeType, id, () => {
      const known = this.#get("SELECT contract FROM contracts WHERE derivative_type = ? AND id = ?", [
        derivativeType,
        id,
      ]);
      if (known !== undefined) return known as number;
      return this.#insert(
        `INSERT INTO contracts (derivative_type, id, exchange_id, market_id, described, first_seen, absences)
          VALUES (?, ?, ?, ?, 0, ?, 0)`,
        [derivativeType, id, stub.exchangeId, stub.marketId, stub.firstSeen],
      );
    });
  }

  forget(): void {
    this.#series.clear();
    this.#names.clear();
    this.#listings.clear();
    this.#contracts.clear();
  }

  #get(sql: string, values: unknown): unknown {
    return this.#connection.statement(sql).pluck().get(values);
  }

  #insert(sql: string, values: unknown): number {
    return Number(this.#connection.statement(sql).run(values).lastInsertRowid);
  }
}

/** What a person calls the index, as far as the lookups tell. */
const seriesName = `SELECT CASE @indexType
  WHEN 'GWA' THEN (SELECT symbol FROM assets WHERE id = @indexId)
  WHEN 'MWA' THEN (SELECT pair FROM markets WHERE id = @indexId)
  WHEN '' THEN (SELECT name FROM exchanges WHERE id = @indexId) END`;

function remember(
  map: Map<string, Map<string, number>>,
  first: string,
  second: string,
  find: () => number,
): number {
  let inner = map.get(first);
  if (!inner) {
    inner = new Map();
    map.set(first, inner);
  }
  let key = inner.get(second);
  if (key === undefined) {
    key = find();
    inner.set(second, key);
  }
  return key;
}
