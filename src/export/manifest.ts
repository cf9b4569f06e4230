import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Raised when the same rows and columns would give other files: the next export then writes everything again. */
export const FILE_FORMAT = 2;

export const MANIFEST = "manifest.json";
export const CATALOGUE = "mds.duckdb";

/** One Parquet file. */
export interface ManifestFile {
  readonly relation: string;
  /** The names and values of its folders, such as `index_type` and `month`. */
  readonly partition: Readonly<Record<string, string>>;
  /** The path for those who read folders: an export that changes the file replaces it. */
  readonly path: string;
  /** The same file under a name that is never reused. */
  readonly version: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Of the content of the warehouse that the file was made from. */
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
  readonly exported_at: string;
  /** The export did not read the months before this one; null: it read all. */
  readonly since: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly files: readonly ManifestFile[];
}

export const hasManifest = (folder: string) => existsSync(join(folder, MANIFEST));

/** Undefined where there is none, or none that this version can read. */
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
