import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Raised when the same rows and columns would give other files: the next export then writes everything again. */
export const FILE_FORMAT = 2;

export const MANIFEST = "manifest.json";
export const CATALOGUE = "mds.duckdb";

/** One Parquet file. */
export interface ManifestFile {
  readonly relation: string;
  /** The values of its folders, such as `index_type` and `month`. */
  readonly partition: Readonly<Record<string, string>>;
  /** Where those find it who read folders: replaced by each export that changes it. */
  readonly path: string;
  /** The same bytes under a name that no other content will ever have. */
  readonly version: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Of the warehouse's content that it was made from. */
  readonly fingerprint: string;
}

export interface Manifest {
  readonly format: number;
  /** Digest of the columns of all files: an export continues only one with the same columns. */
  readonly columns: string;
  /** The program that wrote it. */
  readonly program: string;
  readonly warehouse: string;
  /** The name of this export among those kept for readers that are still at it. */
  readonly generation: string;
  readonly exported_at: string;
  /** Months before this one were not looked at, where it is given. */
  readonly since: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly files: readonly ManifestFile[];
}

export const hasManifest = (folder: string) => existsSync(join(folder, MANIFEST));

/** Undefined where there is none, or none that this version can go on from. */
export function readManifest(folder: string, name = MANIFEST): Manifest | undefined {
  let text: string;
  try {
    text = readFileSync(join(folder, name), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const manifest = JSON.parse(text) as Manifest;
    return manifest.format === FILE_FORMAT && Array.isArray(manifest.files) ? manifest : undefined;
  } catch {
    return undefined;
  }
}

/** The folder of a file below its relation's: `index_type=GWA/month=2026-05`, values percent-encoded as readers expect. */
export function partitionPath(partition: Readonly<Record<string, string>>): string {
  return Object.entries(partition)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("/");
}
