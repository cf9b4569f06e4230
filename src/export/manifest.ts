import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../model/failure.ts";
import type { TimeRange } from "../model/time-range.ts";
import { type PeriodUnit, periodRange } from "../warehouse/read/export-periods.ts";
import type { ExportedState } from "../warehouse/read/export-rows.ts";

/** Raise it when the same rows and columns give different files: the next export then rewrites everything. */
export const FILE_FORMAT = 3;

export const MANIFEST = "manifest.json";
export const CATALOGUE = "mds.duckdb";

export interface ManifestFile {
  readonly relation: string;
  /** The names and values of its folders, such as `index_type` and `month` or `year`. */
  readonly partition: Readonly<Record<string, string>>;
  /** The day or hour of a period that is not over; without one the file has all of the period. */
  readonly slice?: string | undefined;
  /** The path for folder readers. An export that changes the file replaces it. */
  readonly path: string;
  /** The same file under a name that is never reused. */
  readonly version: string;
  readonly rows: number;
  /** The first and the last `ts` or `day`, if known. */
  readonly times?: { readonly first: number | string; readonly last: number | string } | undefined;
  readonly bytes: number;
  readonly sha256: string;
  /** Digest of the names of its series, or of the rows of a small relation. */
  readonly fingerprint: string;
}

export interface Manifest {
  readonly format: number;
  /** Digest of the columns of all files: an export continues only one with the same columns. */
  readonly columns: string;
  /** The version of the program that wrote it. */
  readonly program: string;
  readonly warehouse: string;
  /** The name of this export among the stored generations. */
  readonly generation: string;
  /** The token of the earlier state that it has; none: the newest. */
  readonly known_at?: string | undefined;
  readonly exported_at: string;
  /** The export did not read the months before this one; null: it read all. */
  readonly since: string | null;
  /** The state of the warehouse whose changes the files have; of earlier versions none is known. */
  readonly state?: ExportedState | undefined;
  readonly rows: number;
  readonly bytes: number;
  readonly files: readonly ManifestFile[];
  /** The versions of the Delta tables that belong to this export; only in the newest manifest. */
  readonly tables?: Readonly<Record<string, number>> | undefined;
  /** In a bucket: files that were replaced, and when. They are removed once no reader may use them. */
  readonly removed?: readonly { readonly version: string; readonly at: string }[] | undefined;
}

export const hasManifest = (folder: string) => existsSync(join(folder, MANIFEST));

/** A manifest of this or another format: they all list `files` with their `version`. Undefined: there is none. */
export function readManifest(folder: string, name = MANIFEST): Manifest | undefined {
  let text: string;
  try {
    text = readFileSync(join(folder, name), "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
  return parseManifest(text);
}

export function parseManifest(text: string): Manifest | undefined {
  try {
    const manifest = JSON.parse(text) as Manifest;
    return typeof manifest.format === "number" && Array.isArray(manifest.files) ? manifest : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The path for folder readers: `index_ticks/index_type=GWA/month=2026-05/data.parquet`, values percent-encoded as readers expect.
 * Equal for the files of two exports if one replaces the other.
 */
export function filePath({
  relation,
  partition,
  slice,
}: Pick<ManifestFile, "relation" | "partition" | "slice">): string {
  const folders = Object.entries(partition).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return [relation, ...folders, `data${slice === undefined ? "" : `-${slice}`}.parquet`].join("/");
}

/** What the file of a stream spans. */
export function fileRange(file: ManifestFile): TimeRange {
  return periodRange(file.slice ?? filePeriod(file).period);
}

/** The period of the folder of a stream's file, and its unit. */
export function filePeriod({ partition }: ManifestFile): { unit: PeriodUnit; period: string } {
  const unit = (["year", "month", "day"] as const).find((name) => partition[name] !== undefined);
  return unit ? { unit, period: partition[unit] ?? "" } : { unit: "whole", period: "" };
}
