import { MICROS_PER_SECOND, type Micros, parseInstant } from "../model/instant.ts";
import {
  forgetGeneration,
  generationCatalogue,
  generationManifest,
  generationsOf,
  removeUnnamed,
} from "./export-folder.ts";
import { hasManifest, type Manifest, readManifest } from "./manifest.ts";
import { openDuckDb } from "./parquet-writer.ts";

/** For readers that took a list of files from a manifest: nobody can see whether they are still at it. */
const GRACE: Micros = 3600 * MICROS_PER_SECOND;

/** Removes the files of older exports, but for those that somebody may still read. */
export async function spareReaders(folder: string, current: Manifest, now: Micros): Promise<void> {
  const named = new Set(current.files.map(({ version }) => version));
  let supersededAt = parseInstant(current.exported_at) ?? now;
  for (const generation of generationsOf(folder).reverse()) {
    if (generation === current.generation) continue;
    const manifest = readManifest(folder, generationManifest(generation));
    const isRecent = now - supersededAt < GRACE;
    if (manifest && (isRecent || (await isOpen(generationCatalogue(folder, generation)))))
      for (const { version } of manifest.files) named.add(version);
    else forgetGeneration(folder, generation);
    supersededAt = parseInstant(manifest?.exported_at ?? "") ?? supersededAt;
  }
  removeUnnamed(folder, named);
}

/**
 * Removes what an export that failed or was killed left behind: gigabytes perhaps, on the disk that the warehouse needs, and
 * the next one may fail as well. Names of files that cannot be read are no reason to remove any.
 */
export function removeDebris(folder: string): void {
  const manifests = [undefined, ...generationsOf(folder).map(generationManifest)].map((name) => ({
    isThere: name !== undefined || hasManifest(folder),
    manifest: readManifest(folder, name),
  }));
  if (manifests.some(({ isThere, manifest }) => isThere && !manifest)) return;
  removeUnnamed(
    folder,
    new Set(manifests.flatMap(({ manifest }) => manifest?.files.map(({ version }) => version) ?? [])),
  );
}

/** DuckDB locks the file that it has open, also one that it only reads, for as long as the process lives. */
async function isOpen(catalogue: string): Promise<boolean> {
  try {
    const instance = await openDuckDb(catalogue);
    instance.closeSync();
    return false;
  } catch (error) {
    return error instanceof Error && /lock/i.test(error.message);
  }
}
