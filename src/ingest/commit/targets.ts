import type { HistoryStream, SnapshotStream, Stream } from "../../model/streams.ts";
import { dayOf, type Micros } from "../../model/time.ts";
import { beginRereads } from "../../warehouse/coverage/rechecks.ts";
import { endObservation } from "../../warehouse/coverage/snapshot-coverage.ts";
import { declareWanted, type HeadRules, type Want } from "../../warehouse/coverage/targets.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Warehouse } from "../../warehouse/writer.ts";

/** A series that the settings select. */
export interface SeriesWant {
  readonly indexType: string;
  readonly indexId: string;
  readonly from: Micros;
  /** What the settings call it, for an index that no lookup names. */
  readonly name?: string;
}

export interface WantedDeclaration {
  readonly stream: HistoryStream;
  readonly wants: readonly SeriesWant[];
  readonly rules: HeadRules;
  /** Families whose selector could not be resolved: what was followed of them stays followed. */
  readonly undecided: readonly string[];
  readonly at: Micros;
}

/** Says what the settings select of a stream with a history; what they no longer select ends now. */
export function commitWanted(warehouse: Warehouse, declaration: WantedDeclaration): void {
  const { stream, wants, rules, undecided, at } = declaration;
  warehouse.transaction((transaction) => {
    const { dictionary } = transaction;
    const declared = wants.map(({ indexType, indexId, from, name }): Want => {
      const series = dictionary.series(indexType, indexId);
      if (name !== undefined) dictionary.nameSeries(series, name);
      return { line: { stream, series }, from, ...rules };
    });
    declareWanted(transaction, stream, [...declared, ...followed(transaction, stream, rules, undecided)], at);
    for (const { line } of declared) beginRereads(transaction, line, dayOf(at));
  });
}

function followed(
  transaction: Transaction,
  stream: Stream,
  rules: HeadRules,
  indexTypes: readonly string[],
): Want[] {
  const rows = transaction
    .statement(
      `SELECT w.series, w.from_ts AS "from", s.index_type AS indexType FROM wanted_ranges w
      JOIN series s ON s.series = w.series WHERE w.stream = ? AND w.to_ts IS NULL`,
    )
    .all([stream]) as { series: number; from: Micros; indexType: string }[];
  return rows
    .filter(({ indexType }) => indexTypes.includes(indexType))
    .map(({ series, from }) => ({ line: { stream, series }, from, ...rules }));
}

/** Ends every subscription of a latest-only stream that the settings no longer ask for. */
export function commitSubscriptions(
  warehouse: Warehouse,
  subscriptions: { stream: SnapshotStream; exchangeIds: readonly (string | null)[]; at: Micros },
): void {
  const { stream, exchangeIds, at } = subscriptions;
  const wanted = new Set(exchangeIds.map((id) => id ?? ""));
  warehouse.transaction((transaction) => {
    const open = transaction
      .statement(
        `SELECT s.index_id FROM wanted_ranges w JOIN series s ON s.series = w.series
        WHERE w.stream = ? AND w.to_ts IS NULL AND w.observed = 1`,
      )
      .pluck()
      .all([stream]) as string[];
    for (const id of open) {
      if (!wanted.has(id)) endObservation(transaction, { stream, exchangeId: id === "" ? null : id, at });
    }
  });
}
