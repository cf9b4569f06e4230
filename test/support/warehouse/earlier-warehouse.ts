import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

const fixture = join(import.meta.dirname, "earlier-warehouse.sqlite.gz");

/** A file of version 0.2.0 with rows in every table; it has previews, pending claims, snapshots, and ticks that were moved. */
export function createEarlierWarehouse(path: string): string {
  writeFileSync(path, gunzipSync(readFileSync(fixture)));
  return path;
}
