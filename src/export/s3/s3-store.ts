import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { basename, join } from "node:path";
import { Failure } from "../../model/failure.ts";
import { formatTimestamp, MICROS_PER_DAY, MICROS_PER_MS, parseTimestamp } from "../../model/time.ts";
import { tableFolder } from "../delta/delta-table.ts";
import { overwritesCommits } from "../errors.ts";
import type { ExportStore } from "../export-store.ts";
import { describeVersion, openWorkFolder } from "../folder-store.ts";
import { MANIFEST, type Manifest, parseManifest } from "../manifest.ts";
import { S3Client, type S3ClientOptions, type S3Object } from "./s3-client.ts";
import { type Environment, readS3Target } from "./s3-target.ts";

/*
 * PREFIX/versions/<relation>/…/<sha>.parquet      files under names that are never reused
 * PREFIX/versions/<relation>/_delta_log/          the log of the relation's Delta table
 * PREFIX/versions/generations/<number>.json       one manifest per export; the next number is free for one export only
 * PREFIX/manifest.json                            the newest manifest, for readers
 *
 * A bucket has no locks and no links. Each export builds on the generation that it found, and creates the next one:
 * if another export was faster, that fails. The tables are committed after that, and never over a newer generation.
 */
const GENERATIONS = "versions/generations/";
const GENERATION_DIGITS = 10;
/** Stands in for the newest generation where there is none. */
const PROBE = `${GENERATIONS}probe`;
/** Younger objects may belong to an export that runs now. */
const MIN_LEFTOVER_AGE_MS = 86_400_000;
const MIN_GENERATIONS = 3;

export interface S3StoreOptions extends S3ClientOptions {
  readonly to: string;
  readonly env: Environment;
  /** Unfinished files are written beside it. */
  readonly warehouse: string;
}

export async function openS3Store(options: S3StoreOptions): Promise<ExportStore> {
  const target = readS3Target(options.to, options.env);
  const { url } = target;
  const folder = openFolderBeside(options.warehouse, url);
  const client = new S3Client(target, options);
  try {
    const objects = await client.list("versions/");
    return await storeOf(client, objects, { url, ...folder, now: () => options.clock.now() });
  } catch (error) {
    await client.close();
    folder.release();
    throw error;
  }
}

/** Beside the warehouse: its disk has room for a file, and one export at a time uses it. */
function openFolderBeside(warehouse: string, url: string): ReturnType<typeof openWorkFolder> {
  const path = `${warehouse}.export-${createHash("sha256").update(url).digest("hex").slice(0, 8)}`;
  const { work, release } = openWorkFolder(path, url);
  return {
    work,
    release() {
      release();
      rmSync(path, { recursive: true, force: true });
    },
  };
}

async function storeOf(
  client: S3Client,
  objects: readonly S3Object[],
  { url, work, release, now }: ReturnType<typeof openWorkFolder> & { url: string; now: () => number },
): Promise<ExportStore> {
  const sizes = new Map(objects.map(({ key, size }) => [key, size]));
  const generations = objects.filter(({ key }) => /^\d+\.json$/.test(key.slice(GENERATIONS.length)));
  const newest = generations
    .map(({ key }) => key)
    .sort()
    .at(-1);
  const text = newest === undefined ? undefined : await client.read(newest);
  // A store that ignores the condition replaces the object with the same text.
  if (newest === undefined) await client.create(PROBE, "");
  if (!(await client.protects(newest ?? PROBE, text ?? ""))) throw overwritesCommits(url);
  const found = text === undefined ? undefined : parseManifest(text);
  const next = newest === undefined ? 0 : Number(basename(newest, ".json")) + 1;
  const generation = String(next).padStart(GENERATION_DIGITS, "0");
  const locate = async (key: string) => {
    const file = join(work, `copy-${basename(key)}`);
    await client.download(key, file);
    return file;
  };
  return {
    place: url,
    work,
    catalogue: undefined,
    // Readers on other machines come without a lock.
    defaultKeep: MICROS_PER_DAY,
    previous: found,
    isUsed: newest !== undefined,
    nameGeneration: () => generation,
    hasFile: ({ version, bytes }) => sizes.get(version) === bytes,
    async storeVersion(unfinished, path) {
      const file = await describeVersion(unfinished, path);
      await client.upload(file.version, unfinished);
      rmSync(unfinished);
      return { ...file, path: file.version };
    },
    locate: ({ version }) => locate(version),
    tableLog(relation) {
      const folder = `${tableFolder(relation)}/_delta_log/`;
      return {
        place: `${url}/${folder.slice(0, -1)}`,
        async list() {
          const entries = await client.list(folder);
          return entries.map(({ key, modifiedMs }) => ({ name: key.slice(folder.length), modifiedMs }));
        },
        read: async (name) => (await client.read(folder + name)) ?? "",
        create: (name, content) => client.create(folder + name, content),
        store: (name, file) => client.upload(folder + name, file),
        locate: (name) => locate(folder + name),
        remove: (name) => client.remove(folder + name),
      };
    },
    async storeGeneration(manifest) {
      const removed = replacedFiles(found, manifest);
      const isFirst = await client.create(
        `${GENERATIONS}${generation}.json`,
        JSON.stringify({ ...manifest, removed }),
      );
      if (isFirst) return;
      throw new Failure(`another mds-sync exported to ${url} at the same time`, {
        code: "export_elsewhere",
        remedy: "run it again; let only one machine export to this place",
      });
    },
    isNewer: (entry, own) => /^\d+$/.test(entry) && entry > own,
    async publish(manifest, onStep) {
      await client.write(MANIFEST, JSON.stringify(manifest, null, 1));
      onStep("manifest switched");
    },
    async removeOld(current, { now, keep }) {
      const replaced = replacedFiles(found, current);
      const isDue = (at: string) => now - (parseTimestamp(at) ?? now) > keep;
      const recent = new Set(replaced.filter(({ at }) => !isDue(at)).map(({ version }) => version));
      const listed = new Set(current.files.map(({ version }) => version));
      const known = new Set(replaced.map(({ version }) => version));
      const nowMs = now / MICROS_PER_MS;
      for (const { key, modifiedMs } of objects) {
        if (!/\/[0-9a-f]{24}\.parquet$/.test(key) || listed.has(key) || recent.has(key)) continue;
        // What no manifest lists was left by a killed export, or belongs to one that runs now.
        if (known.has(key) || nowMs - modifiedMs > MIN_LEFTOVER_AGE_MS) await client.remove(key);
      }
      if (newest !== undefined && sizes.has(PROBE)) await client.remove(PROBE);
      for (const { key, modifiedMs } of generations.slice(0, -MIN_GENERATIONS))
        if (nowMs - modifiedMs > keep / MICROS_PER_MS) await client.remove(key);
    },
    // What this export has uploaded is removed a day later: another export may have uploaded the same file meanwhile.
    removeLeftovers: async () => {},
    async close() {
      await client.close();
      release();
    },
  };

  /** Files that this export or earlier ones replaced, until they are removed. */
  function replacedFiles(before: Manifest | undefined, current: Manifest): NonNullable<Manifest["removed"]> {
    const listed = new Set(current.files.map(({ version }) => version));
    const at = formatTimestamp(Math.round(now() * MICROS_PER_MS));
    const earlier = (before?.removed ?? []).filter(({ version }) => sizes.has(version));
    const replaced = (before?.files ?? []).map(({ version }) => ({ version, at }));
    return [...earlier, ...replaced].filter(({ version }) => !listed.has(version));
  }
}
