import type { BarArrays, BarRow, SeriesInfo } from "../rows.ts";
import { toNumbers, toTimestamps } from "./tick-reader.ts";

export function toBarArrays({ index_type, index_id, name }: SeriesInfo, rows: readonly BarRow[]): BarArrays {
  type NumberColumn = "open" | "high" | "low" | "close" | "volume_24h" | "n_ticks" | "coverage";
  const column = (of: NumberColumn) => toNumbers(rows.map((row) => row[of]));
  return {
    index_type,
    index_id,
    name,
    length: rows.length,
    ts: toTimestamps(rows.map(({ ts }) => ts)),
    open: column("open"),
    high: column("high"),
    low: column("low"),
    close: column("close"),
    volume_24h: column("volume_24h"),
    n_ticks: column("n_ticks"),
    coverage: column("coverage"),
    is_complete: Uint8Array.from(rows, (row) => row.is_complete),
    source: rows[0]?.source ?? null,
  };
}
