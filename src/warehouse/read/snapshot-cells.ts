import { ledgerKeyText } from "../coverage/ledger.ts";
import type { KnownLedgerKey } from "../coverage/ledger-keys.ts";
import { readSnapshotRanges } from "../coverage/snapshot-gaps.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { GapSums } from "./gap-summary.ts";
import { CellSums, type TimeGrid } from "./heatmap-grid.ts";

/**
 * Sums the ranges of each snapshot key, which may be too many to hold in memory: the cells by key, each on the grid that `gridOf`
 * returns, and the lost ranges into `gaps`. Yields between two reads.
 */
export function* readSnapshotCells(
  connection: Connection,
  keys: readonly KnownLedgerKey[],
  gridOf: (key: KnownLedgerKey) => TimeGrid,
  gaps: GapSums,
): Generator<void, Map<KnownLedgerKey, CellSums>> {
  const known = new Map(keys.map((key) => [ledgerKeyText(key), key]));
  const found = new Map<KnownLedgerKey, CellSums>();
  for (const { key: ledgerKey, ranges } of readSnapshotRanges(connection)) {
    yield;
    const key = known.get(ledgerKeyText(ledgerKey));
    if (!key) continue;
    const cells = found.get(key) ?? new CellSums(gridOf(key));
    found.set(key, cells);
    for (const { from, to, state, reason } of ranges) {
      cells.add({ from, to }, state);
      if (state === "lost") gaps.add({ key, state, reason: reason ?? "unknown", from, to, lostAt: null });
    }
  }
  return found;
}
