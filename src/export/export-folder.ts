import { createHash } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { Failure } from "../model/failure.ts";
import { MICROS_PER_SECOND, type Micros, parseTimestamp } from "../model/time.ts";
import { acquireWriterLock } from "../warehouse/sqlite/writer-lock.ts";
import { unusable } from "./errors.ts";
import {
  CATALOGUE,
  hasManifest,
  MANIFEST,
  type Manifest,
  type ManifestFile,
  readManifest,
} from "./manifest.ts";
import { openDuckDb } from "./parquet-writer.ts";

/*
 * DIR/manifest.json, DIR/mds.duckdb        what the export consists of; each replaced in one step, the manifest last
 * DIR/<relation>/…/data.parquet            the files for those who read folders; each replaced in one step
 * DIR/versions/<relation>/…/<sha>.parquet  the same files (hard links) under names that are never reused: what manifest
 *                                          and catalogue name, so that a reader of an old one sees the old export, whole
 * DIR/versions/generations/                the manifests and catalogues whose readers may still be at it
 * DIR/work/                                unfinished; of no use to anybody
 */
const VERSIONS = "versions";
const GENERATIONS = "versions/generations";
const WORK = "work";
const LOCK = "export";
const DATA = "data.parquet";

/** Takes the folder for one export; refuses one that holds anything else. */
export function openFolder(folder: string): { readonly work: string; release(): void } {
  mkdirSync(folder, { recursive: true });
  // Things below are removed, so the folder must be ours: many a folder has a manifest.json.
  const names = readdirSync(folder);
  if (names.length > 0 && !names.includes(`${LOCK}.lock`) && !readManifest(folder)) {
    throw unusable(`${folder} holds other files`, "give a folder of its own, new or empty");
  }
  const lock = lockFolder(folder);
  const work = join(folder, WORK);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
  mkdirSync(join(folder, GENERATIONS), { recursive: true });
  return {
    work,
    release() {
      rmSync(work, { recursive: true, force: true });
      lock.release();
    },
  };
}

function lockFolder(folder: string): { release(): void } {
  try {
    return acquireWriterLock(join(folder, LOCK));
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "writer_elsewhere") throw error;
    const holder = /\(([^)]*)\)$/.exec(error.message)?.[1] ?? "pid unknown";
    throw new Failure(`another mds-sync exports to ${folder} (${holder})`, {
      family: "retry",
      code: "export_elsewhere",
      remedy: "leave the work to it, or stop it first",
    });
  }
}

/** Gives a finished file its name for good. */
export function keepVersion(
  folder: string,
  unfinished: string,
  place: string,
): Pick<ManifestFile, "version" | "path" | "bytes" | "sha256"> {
  sync(unfinished);
  const sha256 = digestOf(unfinished);
  const { size: bytes } = statSync(unfinished);
  const version = `${VERSIONS}/${place}/${sha256.slice(0, 24)}.parquet`;
  const target = join(folder, version);
  mkdirSync(dirname(target), { recursive: true });
  renameSync(unfinished, target);
  sync(dirname(target));
  return { version, path: `${place}/${DATA}`, bytes, sha256 };
}

/** Whether the file that a manifest names is still there, as far as a look at its size tells. */
export function isThere(folder: string, { version, bytes }: ManifestFile): boolean {
  return statSync(join(folder, version), { throwIfNoEntry: false })?.size === bytes;
}

/** Notes the export among those whose readers are to be spared: before anybody can see it. */
export function noteGeneration(folder: string, manifest: Manifest, catalogue: string): void {
  const place = join(folder, GENERATIONS, manifest.generation);
  writeSynced(`${place}.json`, manifestText(manifest));
  sync(catalogue);
  linkOrCopy(catalogue, `${place}.duckdb`);
  sync(dirname(place));
}

export function switchCatalogue(folder: string, catalogue: string): void {
  // What somebody wrote into the old catalogue and has not closed: DuckDB would play it into the new one.
  rmSync(join(folder, `${CATALOGUE}.wal`), { force: true });
  renameSync(catalogue, join(folder, CATALOGUE));
  sync(folder);
}

export function switchManifest(folder: string, manifest: Manifest): void {
  const unfinished = join(folder, WORK, MANIFEST);
  writeSynced(unfinished, manifestText(manifest));
  renameSync(unfinished, join(folder, MANIFEST));
  sync(folder);
}

/** Puts the manifest's files where readers of folders look, and takes away what it no longer names. */
export function publish(folder: string, { files }: Manifest, relations: readonly string[]): void {
  const wanted = new Set(files.map(({ path }) => path));
  for (const { path, version } of files) {
    const [target, source] = [join(folder, path), join(folder, version)];
    if (sameFile(target, source)) continue;
    const beside = join(folder, WORK, `${basename(version)}.link`);
    rmSync(beside, { force: true });
    linkOrCopy(source, beside);
    mkdirSync(dirname(target), { recursive: true });
    renameSync(beside, target);
  }
  for (const relation of relations)
    for (const path of filesBelow(folder, relation))
      if (path.endsWith(`/${DATA}`) && !wanted.has(path)) removeWithFolders(folder, path);
}

/** Removes the versions that no export names any more. */
export function removeUnnamed(folder: string, named: ReadonlySet<string>): void {
  for (const path of filesBelow(folder, VERSIONS))
    if (path.endsWith(".parquet") && !named.has(path)) removeWithFolders(folder, path);
}

/** The exports that are kept for their readers, and when each was made: by name. */
export function generationsOf(folder: string): string[] {
  return readdirSync(join(folder, GENERATIONS))
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.slice(0, -".json".length))
    .sort();
}

export const generationManifest = (generation: string) => `${GENERATIONS}/${generation}.json`;
export const generationCatalogue = (folder: string, generation: string) =>
  join(folder, GENERATIONS, `${generation}.duckdb`);

export function forgetGeneration(folder: string, generation: string): void {
  for (const end of [".duckdb.wal", ".duckdb", ".json"])
    rmSync(join(folder, GENERATIONS, generation + end), { force: true });
}

function filesBelow(folder: string, place: string): string[] {
  if (!statSync(join(folder, place), { throwIfNoEntry: false })) return [];
  return readdirSync(join(folder, place), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

function removeWithFolders(folder: string, path: string): void {
  rmSync(join(folder, path), { force: true });
  for (let place = dirname(path); place.includes("/"); place = dirname(place)) {
    if (readdirSync(join(folder, place)).length > 0) return;
    rmSync(join(folder, place), { recursive: true });
  }
}

function sameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false }));
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

/** A second name where the file system has such a thing, a second file where it has not. */
function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK|EXDEV)$/.test(code)) throw error;
    copyFileSync(from, to);
    sync(to);
  }
}

function manifestText(manifest: Manifest): string {
  return `${JSON.stringify(manifest, null, 1)}\n`;
}

function writeSynced(file: string, text: string): void {
  writeFileSync(file, text, { flush: true });
}

function digestOf(file: string): string {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(1024 * 1024);
  const descriptor = openSync(file, "r");
  try {
    for (let read = 1; read > 0; ) {
      read = readSync(descriptor, buffer);
      hash.update(buffer.subarray(0, read));
    }
  } finally {
    closeSync(descriptor);
  }
  return hash.digest("hex");
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** For readers that took a list of files from a manifest: nobody can see whether they are still at it. */
const GRACE: Micros = 3600 * MICROS_PER_SECOND;

/** Removes the files of older exports, but for those that somebody may still read. */
export async function spareReaders(folder: string, current: Manifest, now: Micros): Promise<void> {
  const named = new Set(current.files.map(({ version }) => version));
  let supersededAt = parseTimestamp(current.exported_at) ?? now;
  for (const generation of generationsOf(folder).reverse()) {
    if (generation === current.generation) continue;
    const manifest = readManifest(folder, generationManifest(generation));
    const isRecent = now - supersededAt < GRACE;
    if (manifest && (isRecent || (await isOpen(generationCatalogue(folder, generation)))))
      for (const { version } of manifest.files) named.add(version);
    else forgetGeneration(folder, generation);
    supersededAt = parseTimestamp(manifest?.exported_at ?? "") ?? supersededAt;
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
