import type { Micros } from "../model/instant.ts";
import { connectReader } from "./connection.ts";
import type { SetAside } from "./file-health.ts";
import { settle } from "./ledger.ts";
import type { ObservedStream } from "./observations.ts";
import type { Transaction } from "./transaction.ts";
import { follow } from "./wanted.ts";

interface Followed {
  readonly stream: ObservedStream;
  readonly exchangeId: string;
  readonly from: Micros;
  readonly settleDelay: Micros;
}

/**
 * After a damaged file was set aside: history is fetched again, but what was observed of latest-only streams is gone,
 * and the new ledger says so, as far as the old file still tells since when they were followed.
 */
export function recordLoss(transaction: Transaction, { files }: SetAside): void {
  for (const { stream, exchangeId, from, settleDelay } of readFollowed(files[0])) {
    if (from >= transaction.now) continue;
    const line = { stream, series: transaction.dictionary.subscription(exchangeId) };
    follow(transaction, { line, from, settleDelay, step: 1, keptFor: null }, true);
    settle(transaction, line, { from, to: transaction.now }, "lost", "warehouse damaged");
  }
}

function readFollowed(file: string | undefined): Followed[] {
  if (file === undefined || file.endsWith("-wal")) return [];
  try {
    const reader = connectReader(file);
    try {
      return reader.database
        .prepare(
          `SELECT w.stream, s.index_id AS exchangeId, min(w.from_ts) AS "from", max(w.settle_delay) AS settleDelay
          FROM wanted_ranges w JOIN series s ON s.series = w.series
          WHERE w.observed = 1 AND w.to_ts IS NULL GROUP BY w.stream, w.series`,
        )
        .all() as Followed[];
    } finally {
      reader.close();
    }
  } catch {
    // The damage reaches this far: the file is named in the log, and nothing more can be learned from it.
    return [];
  }
}
