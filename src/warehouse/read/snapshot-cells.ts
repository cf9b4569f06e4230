import { type LedgerKey, ledgerKeyText } from "../coverage/ledger.ts";
import type { KnownLedgerKey } from "../coverage/ledger-keys.ts";
import { forEachSnapshotRange } from "../coverage/snapshot-gaps.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { GapSums } from "./gap-summary.ts";
import { CellSums, type TimeGrid } from "./heatmap-grid.ts";

/**
 * Sums the ranges of each snapshot key, which may be too many to hold in memory: the cells by key, each on the grid that `gridOf`
 * returns, and the lost ranges into `gaps`.
 */
export function readSnapshotCells(
  connection: Connection,
  keys: readonly KnownLedgerKey[],
  gridOf: (key: KnownLedgerKey) => TimeGrid,
  gaps: GapSums,
): Map<KnownLedgerKey, CellSums> {
  const known = new Map(keys.map((key) => [ledgerKeyText(key), key]));
  const found = new Map<KnownLedgerKey, CellSums>();
  let current:
    | { readonly ledgerKey: LedgerKey; readonly key: KnownLedgerKey; readonly cells: CellSums }
    | undefined;
  forEachSnapshotRange(connection, (ledgerKey, { from, to, state, reason }) => {
    if (current?.ledgerKey !== ledgerKey) {
      const key = known.get(ledgerKeyText(ledgerKey));
      if (!key) return;
      current = { ledgerKey, key, cells: new CellSums(gridOf(key)) };
      found.set(key, current.cells);
    }
    const { key, cells } = current;
    cells.add({ from, to }, state);
    if (state === "lost") gaps.add({ key, state, reason: reason ?? "unknown", from, to, lostAt: null });
  });
  return found;
}
