import type { Micros } from "../../../src/model/time.ts";
import { type Heatmap, readHeatmap } from "../../../src/warehouse/read/heatmap.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";

/** Reads a heat map without a pause. */
export function readWholeHeatmap(connection: Connection, now: Micros): Heatmap {
  for (const steps = readHeatmap(connection, now); ; ) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
