// Builds dist/: one file for the program, one for each module that runs in a thread or process of its own, one for each entry of
// the library. A program that runs from dist/ keeps its files: each new file is written beside the old one, then renamed over it,
// and the files of the build before stay. With `--if-stale` it builds only if a source has changed since the last build: npm does
// that after `npm ci`, as `postprepare`, because a script named `prepare` makes npm warn whoever installs the packed file.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { writePages } from "./bundle-pages.ts";
import { inlineColumnDocs } from "./bundle-plugins.ts";

const root = resolve(import.meta.dirname, "..");
const dist = resolve(root, "dist");
const pages = resolve(root, "src/dashboard/bundle");
/** The digest of the sources that dist/ was built from, and its files. Written last, so that an interrupted build is repeated. */
const buildRecord = join(dist, ".sources");

/** What dist/ is built from besides src/; the lock file stands for the packages. */
const SOURCES = [
  "LICENSE",
  "docs/cookbook.md",
  "package-lock.json",
  "package.json",
  "scripts/build.ts",
  "scripts/bundle-plugins.ts",
  "scripts/bundle-pages.ts",
  "tsconfig.json",
];

/** Native packages, and those that a dependency loads if they are there. */
const EXTERNAL = /^(?:better-sqlite3|@duckdb\/node-api|bufferutil|utf-8-validate|pg-native)$/;

/**
 * Turns imports of Node's own modules and of external packages into `require` calls, which run when the importing module does. An
 * import would load all of them at the start, and `import "node:http"` loads Node's whole fetch too.
 */
const requireExternal: Plugin = {
  name: "require-external",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      if (!isBuiltin(path) && !EXTERNAL.test(path)) return;
      return kind === "require-call" ? { path, external: true } : { path, namespace: "required" };
    });
    onLoad({ filter: /^/, namespace: "required" }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)})`,
    }));
  },
};

/** What few commands need is in a file of its own, which the others do not parse. */
const LAZY =
  /^src\/(?:export|share|cli\/commands\/(?:backfill|doctor|export|plan|run|serve|share|simulate|verify))\b/;

/** The module `lazy` has what the program imports while it runs, if it is `LAZY`; the program itself has the rest. */
const lazyImports: Plugin = {
  name: "lazy-imports",
  setup({ onResolve, onLoad }) {
    const targets = new Set<string>();
    for (const file of listSources().filter((path) => path.endsWith(".ts")))
      for (const [, name = ""] of readFileSync(join(root, file), "utf8").matchAll(dynamicImport))
        targets.add(join(dirname(file), name));
    const getters = [...targets]
      .filter((target) => LAZY.test(target))
      .map((target) => `get ${JSON.stringify(target)}() { return require("./${target}"); }`);
    onResolve({ filter: /^lazy$/ }, ({ path }) => ({ path, namespace: "lazy" }));
    onLoad({ filter: /^/, namespace: "lazy" }, () => ({
      contents: `module.exports = { ${getters.join(", ")} };`,
      resolveDir: root,
    }));
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replaceAll(dynamicImport, (_, name: string) => {
        const target = relative(root, join(dirname(path), name));
        return LAZY.test(target)
          ? `(await import("lazy")).default[${JSON.stringify(target)}]`
          : `require(${JSON.stringify(name)})`;
      }),
      loader: "ts",
    }));
  },
};

/** `main.ts` checks the version of Node before it loads the program, which is a file of its own for that. */
const externalProgram: Plugin = {
  name: "external-program",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/program\.ts$/ }, () => ({ path: "../program.js", external: true }));
  },
};

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

function listSources(): string[] {
  const inSrc = listFiles(join(root, "src")).map((file) => join("src", file));
  return inSrc.filter((file) => !resolve(root, file).startsWith(pages));
}

function digestFiles(files: readonly string[]): string {
  const digest = createHash("sha256");
  for (const file of [...SOURCES, ...files]) {
    digest.update(`${file}\0`);
    if (existsSync(join(root, file))) digest.update(readFileSync(join(root, file)));
  }
  return digest.digest("hex");
}

function readRecord(): { readonly digest: string; readonly files: readonly string[] } {
  const [digest = "", ...files] = existsSync(buildRecord)
    ? readFileSync(buildRecord, "utf8").split("\n")
    : [];
  return { digest, files };
}

const dynamicImport = /\bawait import\("(\.[^"]+)"\)/g;

type Files = Map<string, Uint8Array>;

async function bundle(): Promise<Files> {
  const options = {
    absWorkingDir: root,
    outdir: dist,
    write: false,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node22",
    // Node parses a third less at each start. Names stay, for stack traces and heap snapshots.
    minifyWhitespace: true,
    minifySyntax: true,
    sourcemap: true,
    sourcesContent: false,
    legalComments: "none",
    metafile: true,
  } satisfies BuildOptions;
  const threads = listFiles(join(root, "src")).filter(
    (file) => /-(?:worker|process)\.ts$/.test(file) && !file.startsWith("runtime/"),
  );
  const banner = {
    js: 'const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);',
  };
  const toEntry = (file: string) => ({ in: join("src", file), out: basename(file, ".ts") });
  const program = await build({
    ...options,
    entryPoints: [toEntry("cli/program.ts"), { in: "lazy", out: "lazy" }],
    plugins: [inlineColumnDocs, requireExternal, lazyImports],
    banner,
    splitting: true,
    chunkNames: "shared",
  });
  const { outputFiles, metafile } = await build({
    ...options,
    entryPoints: ["library/open-warehouse.ts", ...threads].map(toEntry),
    plugins: [inlineColumnDocs, requireExternal],
    banner,
  });
  // The tables of the library belong to the drizzle of whoever imports them.
  const plain = await build({
    ...options,
    entryPoints: [
      { in: "src/cli/main.ts", out: "cli/main" },
      { in: "src/library/schema.ts", out: "schema" },
    ],
    plugins: [inlineColumnDocs, externalProgram],
    packages: "external",
  });
  const files: Files = new Map();
  for (const { path, contents } of [...program.outputFiles, ...outputFiles, ...plain.outputFiles])
    files.set(relative(dist, path), contents);
  const bundledPages = await writePages();
  for (const [file, bytes] of bundledPages.files) files.set(join("pages", file), bytes);
  const bundled = [program.metafile, metafile].flatMap((each) => Object.keys(each.inputs));
  const inputs = [...bundled, ...Object.keys(plain.metafile.inputs), ...bundledPages.inputs];
  const undeclared = inputs.filter(
    (file) => !/^src\/|(?:^|\/)node_modules\/|^\w+:/.test(file) && !SOURCES.includes(file),
  );
  if (undeclared.length > 0) throw new Error(`add to SOURCES in scripts/build.ts: ${undeclared.join(", ")}`);
  return files.set("NOTICES.txt", Buffer.from(listNotices([...bundled, ...bundledPages.inputs])));
}

/** The licences of the packages that the program and its pages contain. */
function listNotices(inputs: readonly string[]): string {
  const packages = new Set(
    inputs.flatMap((file) => /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(file) ?? []),
  );
  const notices = [...packages].sort().map((path) => {
    const { name, version, license, author } = JSON.parse(
      readFileSync(join(root, path, "package.json"), "utf8"),
    );
    const file = readdirSync(join(root, path)).find((entry) => /^licen[cs]e/i.test(entry));
    const text =
      file === undefined
        ? standardLicence(license, author?.name ?? author ?? `the authors of ${name}`)
        : readFileSync(join(root, path, file), "utf8");
    return `${name} ${version} (${license})\n\n${text.trim()}\n`;
  });
  return notices.join(`\n${"-".repeat(80)}\n\n`);
}

/** For a package that does not include the text of its licence: that of this project, or of TypeScript. */
function standardLicence(license: string, holder: string): string {
  if (license === "Apache-2.0")
    return `Copyright ${holder}\n\n${readFileSync(join(root, "node_modules/typescript/LICENSE"), "utf8")}`;
  if (license !== "MIT") throw new Error(`a bundled package has no text of its licence ${license}`);
  return readFileSync(join(root, "LICENSE"), "utf8").replace(/^Copyright .*$/m, `Copyright (c) ${holder}`);
}

/** The declarations of the library, and of the modules that those name. */
function declareTypes(): Files {
  const folder = mkdtempSync(join(tmpdir(), "mds-sync-types-"));
  try {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const args = ["-p", join(root, "src/library"), "--outDir", folder];
    execFileSync(process.execPath, [tsc, ...args], { stdio: "inherit" });
    const needed: Files = new Map();
    const queue = ["library/open-warehouse.d.ts", "library/schema.d.ts"];
    for (const file of queue) {
      if (needed.has(file)) continue;
      const text = readFileSync(join(folder, file));
      needed.set(file, text);
      for (const [, name = ""] of text.toString().matchAll(/"(\.[^"]+)\.ts"/g))
        queue.push(`${join(dirname(file), name)}.d.ts`);
    }
    return needed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Renames over what differs: no file of dist/ is missing at any moment. */
function install(files: Files): void {
  for (const [file, bytes] of files) {
    const target = join(dist, file);
    if (existsSync(target) && readFileSync(target).equals(bytes)) continue;
    mkdirSync(dirname(target), { recursive: true });
    const beside = `${target}.${process.pid}`;
    writeFileSync(beside, bytes, { mode: file === "cli/main.js" ? 0o755 : 0o644 });
    renameSync(beside, target);
  }
}

/** A program of the build before may still run, and start a thread; one of an older build has been upgraded twice. */
function removeOld(files: Files): void {
  const { files: previous } = readRecord();
  if (previous.length === 0) return;
  const kept = new Set([basename(buildRecord), ...files.keys(), ...previous]);
  for (const file of listFiles(dist)) if (!kept.has(file)) rmSync(join(dist, file));
}

async function buildAll(digest: string): Promise<void> {
  const files = await bundle();
  for (const [file, bytes] of declareTypes()) files.set(join("types", file), bytes);
  install(files);
  removeOld(files);
  writeFileSync(buildRecord, [digest, ...files.keys()].join("\n"));
}

const digest = digestFiles(listSources());
const isCurrent = existsSync(pages) && readRecord().digest === digest;
if (!isCurrent || !process.argv.includes("--if-stale")) await buildAll(digest);
