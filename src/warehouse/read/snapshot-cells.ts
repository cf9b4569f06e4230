import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { type LedgerKey, ledgerKeyText } from "../coverage/ledger.ts";
import type { KnownLedgerKey } from "../coverage/ledger-keys.ts";
import { forEachSnapshotRange } from "../coverage/snapshot-gaps.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { GapSummary } from "./gap-summary.ts";
import { CellSums, type TimeGrid } from "./heatmap-grid.ts";

/** The sums over the ranges of a snapshot key, which may be too many to hold in memory. */
export interface SnapshotCells {
  readonly cells: CellSums;
  /** The lost ranges by reason. */
  readonly losses: Map<string, LossSummary>;
}

interface LossSummary {
  readonly key: KnownLedgerKey;
  readonly reason: string;
  ranges: number;
  micros: number;
  readonly from: Micros;
  to: Micros;
}

/** The sums of all snapshot keys by `ledgerKeyText`, each on the grid that `gridOf` returns. */
export function readSnapshotCells(
  connection: Connection,
  keys: readonly KnownLedgerKey[],
  gridOf: (key: KnownLedgerKey) => TimeGrid,
): Map<string, SnapshotCells> {
  const known = new Map(keys.map((key) => [ledgerKeyText(key), key]));
  const found = new Map<string, SnapshotCells>();
  let current:
    | { readonly ledgerKey: LedgerKey; readonly key: KnownLedgerKey; readonly sums: SnapshotCells }
    | undefined;
  forEachSnapshotRange(connection, (ledgerKey, { from, to, state, reason }) => {
    if (current?.ledgerKey !== ledgerKey) {
      const text = ledgerKeyText(ledgerKey);
      const key = known.get(text);
      if (!key) return;
      current = { ledgerKey, key, sums: { cells: new CellSums(gridOf(key)), losses: new Map() } };
      found.set(text, current.sums);
    }
    const { key, sums } = current;
    sums.cells.add({ from, to }, state);
    if (state !== "lost") return;
    const lossReason = reason ?? "unknown";
    const loss = sums.losses.get(lossReason) ?? { key, reason: lossReason, ranges: 0, micros: 0, from, to };
    loss.ranges++;
    loss.micros += to - from;
    loss.to = to;
    sums.losses.set(lossReason, loss);
  });
  return found;
}

export function toGapSummary({ key, reason, ranges, micros, from, to }: LossSummary): GapSummary {
  const { stream, index_type, index_id, name } = key;
  return {
    ...{ stream, index_type, index_id, name, state: "lost", reason },
    ranges,
    seconds: Math.round(micros / MICROS_PER_SECOND),
    from_time: formatTimestamp(from),
    to_time: formatTimestamp(to),
    lost_at: null,
  };
}
