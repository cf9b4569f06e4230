import { join } from "node:path";
import { MICROS_PER_SECOND } from "../model/time.ts";
import { resolvePath } from "../warehouse/sqlite/disk.ts";
import { wholeRelations } from "./catalogue/catalogue.ts";
import {
  generationsOf,
  hasFile,
  openExportFolder,
  publishFiles,
  removeLeftovers,
  removeOldGenerations,
  storeGeneration,
  storeVersion,
  switchCatalogue,
  switchManifest,
  syncVersion,
  tableLog,
} from "./export-folder.ts";
import type { ExportStore } from "./export-store.ts";
import { hasManifest, readAnyManifest } from "./manifest.ts";
import { exportStreams } from "./stream-files.ts";

/** Readers that use the file list of a manifest or a table's log hold no lock. */
const DEFAULT_KEEP = 3600 * MICROS_PER_SECOND;

/** A folder, locked for one export. */
export function openFolderStore(target: string): ExportStore {
  const { work, release } = openExportFolder(target);
  const folder = resolvePath(target);
  try {
    // A killed export could not remove its own leftovers.
    removeLeftovers(folder);
  } catch (error) {
    release();
    throw error;
  }
  const syncs: Promise<void>[] = [];
  return {
    place: folder,
    work,
    hasCatalogue: true,
    defaultKeep: DEFAULT_KEEP,
    previous: readAnyManifest(folder),
    isUsed: hasManifest(folder),
    nameGeneration(exportedAt) {
      const stamp = exportedAt.replaceAll(/[-:.]/g, "");
      return `${stamp}-${generationsOf(folder).filter((name) => name.startsWith(stamp)).length}`;
    },
    hasFile: (file) => hasFile(folder, file),
    async storeVersion(unfinished, path) {
      const file = storeVersion(folder, unfinished, path);
      const synced = syncVersion(folder, file.version);
      // Its failure counts when the export refers to the file.
      synced.catch(() => {});
      syncs.push(synced);
      return file;
    },
    locate: async ({ version }) => join(folder, version),
    tableLog: (relation) => tableLog(folder, relation),
    async storeGeneration(manifest, catalogue) {
      await Promise.all(syncs);
      storeGeneration(folder, manifest, catalogue ?? "");
    },
    // The folder is locked, so only an earlier export can have written it.
    isNewer: () => false,
    async publish(manifest, catalogue, onStep) {
      switchCatalogue(folder, catalogue ?? "");
      onStep("catalogue switched");
      switchManifest(folder, manifest);
      onStep("manifest switched");
      publishFiles(folder, manifest, [...exportStreams, ...wholeRelations.map(({ name }) => name)]);
      onStep("published");
    },
    removeOld: (current, options) => removeOldGenerations(folder, current, options),
    removeLeftovers: async () => removeLeftovers(folder),
    async close() {
      await Promise.allSettled(syncs);
      release();
    },
  };
}
