import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

const fixture = join(import.meta.dirname, "earlier-warehouse.sqlite.gz");

/** A file with rows in every table, as the program wrote it whose 16 migrations became one. */
export function createEarlierWarehouse(path: string): string {
  writeFileSync(path, gunzipSync(readFileSync(fixture)));
  return path;
}
