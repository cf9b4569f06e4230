import { BUCKET_COUNT, bucketOf } from "../model/buckets.ts";
import { hasHistory, type RowStream } from "../model/streams.ts";
import { readSeriesIdentities, readSubscriptions } from "../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import type { Leases } from "./server/leases.ts";

/** Lookups and other relations without a series are forwarded by the holder of this bucket. */
export const LOOKUP_BUCKET = 0;

/** Which keys of the SQLite file this daemon may forward: those whose bucket it has a lease of. */
export class Ownership {
  readonly #connection: Connection;
  readonly #leases: Leases;
  readonly #bucketBySeries = new Map<number, number>();
  readonly #subscriptions = new Map<RowStream, Map<number, number[]>>();

  constructor(connection: Connection, leases: Leases) {
    this.#connection = connection;
    this.#leases = leases;
  }

  /** Forgets which exchange a market or contract belongs to; call it when the dictionaries have new keys. */
  refresh(): void {
    this.#subscriptions.clear();
  }

  get ownsAll(): boolean {
    return this.#leases.count === BUCKET_COUNT;
  }

  get ownsLookups(): boolean {
    return this.#leases.has(LOOKUP_BUCKET);
  }

  ownsSeries(series: number): boolean {
    return this.#leases.has(this.bucketOfSeries(series));
  }

  /** The bucket of a series or subscription of the ledger. */
  bucketOfSeries(series: number): number {
    if (!this.#bucketBySeries.has(series))
      for (const { series: each, indexType, indexId } of readSeriesIdentities(this.#connection))
        this.#bucketBySeries.set(each, bucketOf(indexType, indexId));
    return this.#bucketBySeries.get(series) ?? LOOKUP_BUCKET;
  }

  /** The bucket whose lease allows to forward the rows of a key; undefined: another daemon forwards them. */
  bucketOfRows(stream: RowStream, key: number): number | undefined {
    const series = hasHistory(stream) ? [key] : (this.#subscriptionsOf(stream).get(key) ?? []);
    const own = series.find((each) => this.ownsSeries(each));
    if (own !== undefined) return this.bucketOfSeries(own);
    return this.ownsAll ? LOOKUP_BUCKET : undefined;
  }

  #subscriptionsOf(stream: RowStream): Map<number, number[]> {
    let found = this.#subscriptions.get(stream);
    if (!found) {
      found = readSubscriptions(this.#connection, stream);
      this.#subscriptions.set(stream, found);
    }
    return found;
  }
}
