import type { HistoryStream } from "../../model/streams.ts";
import { NOT_FOUND } from "../../rule/claim.ts";
import { reopen } from "../../rule/findings.ts";
import { settledRanges } from "../schema/coverage.ts";
import type { Connection, Orm } from "../sqlite/connection.ts";
import { and, eq } from "../sqlite/drizzle.ts";
import type { Transaction } from "../tables/transaction.ts";
import { applyChanges, isOfKey, type LedgerKey } from "./ledger.ts";

const isNotFound = eq(settledRanges.reason, NOT_FOUND);

/** Series for which the service once answered 404. If it serves records now, those ranges are fetched again. */
export function readNotFoundSeries(connection: Connection, stream: HistoryStream): Set<number> {
  const isOfStream = and(eq(settledRanges.stream, stream), isNotFound);
  const found = connection.orm.select({ series: settledRanges.series }).from(settledRanges).where(isOfStream);
  return new Set(found.all().map(({ series }) => series));
}

/** Whether the service once answered 404 for this series. */
export function wasNotFound(connection: Connection, key: LedgerKey): boolean {
  return connection.prepared(notFoundRanges).all(key).length > 0;
}

const isNotFoundOfKey = and(isOfKey(settledRanges), isNotFound);
const notFoundRanges = (orm: Orm) => orm.select().from(settledRanges).where(isNotFoundOfKey).prepare();

/** The service has the index after all: retracts what a 404 settled. */
export function reopenNotFound(transaction: Transaction, key: LedgerKey): void {
  applyChanges(transaction, key, reopen(transaction.prepared(notFoundRanges).all(key)));
}
