import type { Micros } from "../model/time.ts";
import type { LogFiles } from "./delta/delta-log.ts";
import type { Manifest, ManifestFile } from "./manifest.ts";

export type StoredFile = Pick<ManifestFile, "version" | "path" | "bytes" | "sha256">;

/** Where an export goes: a folder, or a bucket. It belongs to one export until it is closed. */
export interface ExportStore {
  /** How messages name it. */
  readonly place: string;
  /** A local folder for unfinished files. */
  readonly work: string;
  /** Where the export writes the DuckDB catalogue; undefined: the store cannot hold one. */
  readonly catalogue: string | undefined;
  /** How long replaced files stay, unless the caller says otherwise. */
  readonly defaultKeep: Micros;
  /** The newest export, even of another version. */
  readonly previous: Manifest | undefined;
  /** Whether it contains an export, even one that cannot be read. */
  readonly isUsed: boolean;
  /** The name of the next export among the stored ones. */
  nameGeneration(exportedAt: string): string;
  /** Whether a file of a manifest still exists with the same size. */
  hasFile(file: ManifestFile): boolean;
  /** Moves a finished file to its permanent name, which no reader knows yet. `path`: its path for folder readers. */
  storeVersion(unfinished: string, path: string): Promise<StoredFile>;
  /** The path of a file, or of a local copy of it. */
  locate(file: ManifestFile): Promise<string>;
  tableLog(relation: string): LogFiles;
  /** Stores the list of files before readers can see the export, so that no clean-up removes them. */
  storeGeneration(manifest: Manifest): Promise<void>;
  /** Whether a newer export than `generation` wrote this entry of a table's log. */
  isNewer(entry: string, generation: string): boolean;
  /** Shows the export to readers of the catalogue, the manifest and the folders. */
  publish(manifest: Manifest, onStep: (step: PublishStep) => void): Promise<void>;
  /** Removes the files of older exports, except those that readers may still use. */
  removeOld(current: Manifest, keep: { readonly now: Micros; readonly keep: Micros }): Promise<void>;
  removeLeftovers(): Promise<void>;
  close(): Promise<void>;
}

export type PublishStep = "catalogue switched" | "manifest switched" | "published";
