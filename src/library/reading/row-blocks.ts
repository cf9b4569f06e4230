import type { Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { BarRow, TickRow } from "../rows.ts";
import type { BarGrid } from "./bar-grid.ts";
import { readBars } from "./bar-reader.ts";
import type { ReadPlan } from "./read-plan.ts";
import { readTickRows } from "./tick-reader.ts";
import type { TimeZone } from "./time-zone.ts";

/** How many rows a reader of an iteration holds. */
const ROWS_PER_BLOCK = 4_096;

/** The first rows of a range, and where the rest of it begins. */
export interface IteratedRows<Row> {
  readonly rows: readonly Row[];
  readonly next: Micros;
}

export function readTickBlock(
  connection: Connection,
  { series, range }: ReadPlan,
  zone: TimeZone,
): IteratedRows<TickRow> {
  const rows: TickRow[] = [];
  for (const row of readTickRows(connection, series, range, zone))
    if (rows.push(row) === ROWS_PER_BLOCK) return { rows, next: row.ts + 1 };
  return { rows, next: range.to };
}

export function readBarBlock(
  connection: Connection,
  { series, range, source }: ReadPlan,
  grid: BarGrid,
  running: boolean | undefined,
): IteratedRows<BarRow> {
  const start = grid.startOf(range.from);
  const next = Math.min(range.to, grid.startOf(start + ROWS_PER_BLOCK * grid.length));
  const block = { from: range.from, to: next };
  return { rows: [...readBars(connection, series, { grid, range: block, source, running })], next };
}
