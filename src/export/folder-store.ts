import { createHash } from "node:crypto";
import {
  copyFileSync,
  createReadStream,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { errorCode, Failure } from "../model/failure.ts";
import { MICROS_PER_SECOND, type Micros, parseTimestamp } from "../model/time.ts";
import { createFolder, resolvePath, syncToDisk } from "../warehouse/sqlite/disk.ts";
import { acquireWriterLock } from "../warehouse/sqlite/writer-lock.ts";
import { wholeRelations } from "./catalogue/catalogue.ts";
import type { LogFiles } from "./delta/delta-log.ts";
import { tableFolder } from "./delta/delta-table.ts";
import { exportRefused } from "./errors.ts";
import type { ExportStore, StoredFile } from "./export-store.ts";
import { CATALOGUE, hasManifest, MANIFEST, type Manifest, readManifest } from "./manifest.ts";
import { openDuckDb } from "./parquet-writer.ts";
import { exportStreams } from "./stream-files.ts";

/*
 * DIR/manifest.json, DIR/mds.duckdb        the list of files and the catalogue; each replaced atomically, manifest last
 * DIR/<relation>/…/data*.parquet           the files for tools that read folders; each replaced atomically
 * DIR/versions/<relation>/…/<sha>.parquet  the same files (hard links) under names that are never reused. Manifest and
 *                                          catalogue name these, so a reader of an old one sees all of the old export
 * DIR/versions/<relation>/_delta_log/      makes that folder a Delta table; an entry is created completely, or not at all
 * DIR/versions/generations/                earlier manifests and catalogues that readers may still use
 * DIR/.mds-sync/                           the lock, and unfinished files; readers of folders skip names with a dot
 */
const VERSIONS = "versions";
const GENERATIONS = "versions/generations";
const OWN = ".mds-sync";
const WORK = `${OWN}/work`;
const DATA = /\/data(-[^/]*)?\.parquet$/;
const TABLE_LOG = "_delta_log";

/** Readers that use the file list of a manifest or a table's log hold no lock. */
const DEFAULT_KEEP = 3600 * MICROS_PER_SECOND;

/** A folder, locked for one export. */
export function openFolderStore(target: string): ExportStore {
  const { work, release } = lockForExport(target);
  const folder = resolvePath(target);
  try {
    // A killed export could not remove its own leftovers.
    removeLeftovers(folder);
  } catch (error) {
    release();
    throw error;
  }
  /** Files that are synced before the export refers to them. */
  const stored: string[] = [];
  const catalogue = join(work, CATALOGUE);
  return {
    place: folder,
    work,
    catalogue,
    defaultKeep: DEFAULT_KEEP,
    previous: readManifest(folder),
    isUsed: hasManifest(folder),
    nameGeneration(exportedAt) {
      const stamp = exportedAt.replaceAll(/[-:.]/g, "");
      return `${stamp}-${generationsOf(folder).filter((name) => name.startsWith(stamp)).length}`;
    },
    hasFile: ({ version, bytes }) =>
      statSync(join(folder, version), { throwIfNoEntry: false })?.size === bytes,
    async storeVersion(unfinished, path) {
      const file = await describeVersion(unfinished, path);
      const target = join(folder, file.version);
      mkdirSync(dirname(target), { recursive: true });
      renameSync(unfinished, target);
      stored.push(target);
      return file;
    },
    locate: async ({ version }) => join(folder, version),
    tableLog: (relation) => tableLog(folder, relation),
    async storeGeneration(manifest) {
      for (const path of new Set([...stored, ...stored.map(dirname)])) syncToDisk(path);
      const place = join(folder, GENERATIONS, manifest.generation);
      writeSynced(`${place}.json`, manifestText(manifest));
      syncToDisk(catalogue);
      linkOrCopy(catalogue, `${place}.duckdb`);
      syncToDisk(dirname(place));
    },
    // The folder is locked, so only an earlier export can have written it.
    isNewer: () => false,
    async publish(manifest, onStep) {
      // A reader that wrote to the old catalogue may have left a WAL, which DuckDB would replay into the new one.
      rmSync(join(folder, `${CATALOGUE}.wal`), { force: true });
      renameSync(catalogue, join(folder, CATALOGUE));
      syncToDisk(folder);
      onStep("catalogue switched");
      const unfinished = join(folder, WORK, MANIFEST);
      writeSynced(unfinished, manifestText(manifest));
      renameSync(unfinished, join(folder, MANIFEST));
      syncToDisk(folder);
      onStep("manifest switched");
      publishFiles(folder, manifest, [...exportStreams, ...wholeRelations.map(({ name }) => name)]);
      onStep("published");
    },
    removeOld: (current, options) => removeOldGenerations(folder, current, options),
    removeLeftovers: async () => removeLeftovers(folder),
    close: async () => release(),
  };
}

/** Rejects a folder that contains other files. */
function lockForExport(folder: string) {
  createFolder(folder);
  // An export deletes files, so the folder must belong to it. A manifest.json of another program is no proof.
  const names = readdirSync(folder);
  if (names.length > 0 && !names.includes(OWN) && !readManifest(folder)) {
    throw exportRefused(`${folder} contains other files`, "choose a new or empty folder");
  }
  const work = openWorkFolder(join(folder, OWN), folder);
  mkdirSync(join(folder, GENERATIONS), { recursive: true });
  return work;
}

/** Locks a folder of the program's own, and empties the place in it for unfinished files. `place`: what is exported to. */
export function openWorkFolder(own: string, place: string) {
  mkdirSync(own, { recursive: true });
  const lock = lockExport(join(own, "export"), place);
  const work = join(own, "work");
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
  return {
    work,
    release() {
      rmSync(work, { recursive: true, force: true });
      lock.release();
    },
  };
}

function lockExport(file: string, place: string): { release(): void } {
  try {
    return acquireWriterLock(file);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "writer_elsewhere") throw error;
    const holder = /\(([^)]*)\)$/.exec(error.message)?.[1] ?? "pid unknown";
    throw new Failure(`another mds-sync exports to ${place} (${holder})`, {
      code: "export_elsewhere",
      remedy: "wait for it, or stop it first",
    });
  }
}

/** The permanent name of a finished file. */
export async function describeVersion(unfinished: string, path: string): Promise<StoredFile> {
  const sha256 = await digestOf(unfinished);
  const version = `${VERSIONS}/${dirname(path)}/${sha256.slice(0, 24)}.parquet`;
  return { version, path, bytes: statSync(unfinished).size, sha256 };
}

/** Links the files of the manifest to the paths for folder readers, and removes files that it no longer lists. */
function publishFiles(folder: string, { files }: Manifest, relations: readonly string[]): void {
  const listedPaths = new Set(files.map(({ path }) => path));
  for (const { path, version } of files) {
    const [target, source] = [join(folder, path), join(folder, version)];
    if (sameFile(target, source)) continue;
    const link = join(folder, WORK, `${basename(version)}.link`);
    rmSync(link, { force: true });
    linkOrCopy(source, link);
    mkdirSync(dirname(target), { recursive: true });
    renameSync(link, target);
  }
  for (const relation of relations)
    for (const path of filesBelow(folder, relation))
      if (DATA.test(path) && !listedPaths.has(path)) removeWithFolders(folder, path);
}

function removeUnlistedVersions(folder: string, listed: ReadonlySet<string>): void {
  for (const path of filesBelow(folder, VERSIONS))
    if (path.endsWith(".parquet") && !listed.has(path) && !path.includes(`/${TABLE_LOG}/`))
      removeWithFolders(folder, path);
}

function tableLog(folder: string, relation: string): LogFiles {
  const place = join(folder, tableFolder(relation), TABLE_LOG);
  mkdirSync(place, { recursive: true });
  return {
    place,
    list: async () =>
      readdirSync(place).map((name) => ({ name, modifiedMs: statSync(join(place, name)).mtimeMs })),
    read: async (name) => readFileSync(join(place, name), "utf8"),
    async create(name, text) {
      const unfinished = join(folder, WORK, name);
      writeSynced(unfinished, text);
      const isCreated = linkUnlessExists(unfinished, join(place, name));
      // Otherwise the next entry of that name would be written into the linked file.
      rmSync(unfinished, { force: true });
      syncToDisk(place);
      return isCreated;
    },
    async store(name, file) {
      syncToDisk(file);
      renameSync(file, join(place, name));
      syncToDisk(place);
    },
    locate: async (name) => join(place, name),
    remove: async (name) => rmSync(join(place, name), { force: true }),
  };
}

/** Returns whether the file got the new name. */
function linkUnlessExists(file: string, name: string): boolean {
  try {
    linkSync(file, name);
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    if (!isWithoutLinks(error)) throw error;
    // A rename is atomic but replaces; the folder's lock keeps other exports away.
    if (existsSync(name)) return false;
    renameSync(file, name);
  }
  return true;
}

/** The names of the stored generations, oldest first. */
function generationsOf(folder: string): string[] {
  return readdirSync(join(folder, GENERATIONS))
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.slice(0, -".json".length))
    .sort();
}

const generationManifest = (generation: string) => `${GENERATIONS}/${generation}.json`;

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

/** A hard link, or a copy where the file system has no links. */
function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!isWithoutLinks(error)) throw error;
    copyFileSync(from, to);
    syncToDisk(to);
  }
}

const isWithoutLinks = (error: unknown) =>
  /^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK|EXDEV)$/.test(errorCode(error));

function manifestText(manifest: Manifest): string {
  return `${JSON.stringify(manifest, null, 1)}\n`;
}

function writeSynced(file: string, text: string): void {
  writeFileSync(file, text, { flush: true });
}

export async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

async function removeOldGenerations(
  folder: string,
  current: Manifest,
  { now, keep }: { now: Micros; keep: Micros },
): Promise<void> {
  const listed = new Set(current.files.map(({ version }) => version));
  let supersededAt = parseTimestamp(current.exported_at) ?? now;
  for (const generation of generationsOf(folder).reverse()) {
    if (generation === current.generation) continue;
    const manifest = readManifest(folder, generationManifest(generation));
    const place = join(folder, GENERATIONS, generation);
    const isRecent = now - supersededAt < keep;
    if (manifest && (isRecent || (await isOpen(`${place}.duckdb`))))
      for (const { version } of manifest.files) listed.add(version);
    else for (const end of [".duckdb.wal", ".duckdb", ".json"]) rmSync(place + end, { force: true });
    supersededAt = parseTimestamp(manifest?.exported_at ?? "") ?? supersededAt;
  }
  removeUnlistedVersions(folder, listed);
}

/**
 * Removes what a failed or killed export left: it may be gigabytes on the warehouse's own disk. If any manifest cannot
 * be read, nothing is removed.
 */
function removeLeftovers(folder: string): void {
  const names = [
    ...(hasManifest(folder) ? [MANIFEST] : []),
    ...generationsOf(folder).map(generationManifest),
  ];
  const manifests = names.map((name) => readManifest(folder, name));
  if (!manifests.every((manifest) => manifest !== undefined)) return;
  const listed = manifests.flatMap(({ files }) => files.map(({ version }) => version));
  removeUnlistedVersions(folder, new Set(listed));
}

/** Whether a process has the catalogue open: DuckDB locks an open file, even if it is read-only. */
async function isOpen(catalogue: string): Promise<boolean> {
  try {
    (await openDuckDb(catalogue)).closeSync();
    return false;
  } catch (error) {
    return error instanceof Error && /lock/i.test(error.message);
  }
}
