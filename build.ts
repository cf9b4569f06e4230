// Builds dist/. A program that runs from dist/ keeps its files: each new file is written beside the old one, then renamed over it.
// Files that the program no longer has stay, since an earlier one may be running. With `--if-stale` it builds only if a source
// has changed since the last build.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { writePages } from "./bundle-pages.ts";

const root = import.meta.dirname;
const dist = resolve(root, "dist");
const pages = resolve(root, "src/dashboard/bundle");
/** The digest of the sources that dist/ was built from. Written last, so that an interrupted build is repeated. */
const digestFile = join(dist, ".sources");

const PROJECTS = ["tsconfig.build.json", "tsconfig.library.json"];
const SOURCES = ["build.ts", "bundle-pages.ts", "package-lock.json", "tsconfig.json", ...PROJECTS];

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

function digestSources(): string {
  const inSrc = listFiles(join(root, "src")).map((file) => join("src", file));
  const sources = inSrc.filter((file) => !resolve(root, file).startsWith(pages));
  const digest = createHash("sha256");
  for (const file of [...SOURCES, ...sources])
    digest.update(`${file}\0`).update(readFileSync(join(root, file)));
  return digest.digest("hex");
}

async function compile(folder: string): Promise<void> {
  await writePages();
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  for (const project of PROJECTS)
    execFileSync(process.execPath, [tsc, "-p", join(root, project), "--outDir", folder], {
      stdio: "inherit",
    });
  cpSync(pages, join(folder, "dashboard/bundle"), { recursive: true });
  chmodSync(join(folder, "cli/main.js"), 0o755);
}

/** Renames over what differs: no file of dist/ is missing at any moment. */
function install(folder: string): void {
  for (const file of listFiles(folder)) {
    const [source, target] = [join(folder, file), join(dist, file)];
    if (existsSync(target) && readFileSync(target).equals(readFileSync(source))) continue;
    mkdirSync(dirname(target), { recursive: true });
    const beside = `${target}.${process.pid}`;
    copyFileSync(source, beside);
    renameSync(beside, target);
  }
}

async function build(digest: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "mds-sync-build-"));
  try {
    await compile(folder);
    install(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  writeFileSync(digestFile, digest);
}

const digest = digestSources();
const isCurrent = existsSync(digestFile) && readFileSync(digestFile, "utf8") === digest;
if (!isCurrent || !process.argv.includes("--if-stale")) await build(digest);
