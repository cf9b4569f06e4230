import { formatInstant, MICROS_PER_SECOND, type Micros } from "../model/instant.ts";
import type { Connection } from "./connection.ts";
import { CellSums, type TimeGrid } from "./coverage-grid.ts";
import { walkObserved } from "./observed-lines.ts";
import { type LineRow, lineKey, type MissingPart } from "./picture-shapes.ts";

/** A latest-only line: too many stretches to keep, so only what they add up to. */
export interface ObservedCells {
  readonly cells: CellSums;
  /** What is lost, by reason. */
  readonly parts: Map<string, LossSum>;
}

export interface LossSum {
  readonly line: LineRow;
  readonly reason: string;
  ranges: number;
  micros: number;
  readonly from: Micros;
  to: Micros;
}

/** The latest-only lines by `lineKey`, each in the grid that it is shown in. */
export function readObserved(
  connection: Connection,
  lines: readonly LineRow[],
  gridOf: (line: LineRow) => TimeGrid,
): Map<string, ObservedCells> {
  const known = new Map(lines.map((line) => [`${line.stream} ${line.series}`, line]));
  const found = new Map<string, ObservedCells>();
  let [last, at]: [string, ObservedCells | undefined] = ["", undefined];
  walkObserved(connection, ({ stream, series }, { from, to, state, reason }) => {
    const key = `${stream} ${series}`;
    const line = known.get(key);
    if (!line) return;
    if (key !== last || !at) {
      at = { cells: new CellSums(gridOf(line)), parts: new Map() };
      last = key;
      found.set(lineKey(line), at);
    }
    at.cells.add({ from, to }, state);
    if (state !== "lost") return;
    const why = reason ?? "unknown";
    const sum = at.parts.get(why) ?? { line, reason: why, ranges: 0, micros: 0, from, to };
    sum.ranges++;
    sum.micros += to - from;
    sum.to = to;
    at.parts.set(why, sum);
  });
  return found;
}

export function partSeen({ line, reason, ranges, micros, from, to }: LossSum): MissingPart {
  return {
    stream: line.stream,
    index_type: line.index_type || null,
    index_id: line.index_id || null,
    name: line.name || null,
    state: "lost",
    reason,
    ranges,
    seconds: Math.round(micros / MICROS_PER_SECOND),
    from_time: formatInstant(from),
    to_time: formatInstant(to),
    lost_at: null,
  };
}
