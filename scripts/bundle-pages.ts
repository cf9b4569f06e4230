// Bundles the pages of the dashboard into src/dashboard/bundle/, which the daemon serves as it is. `npm run build` copies it into dist/.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "src/dashboard/page");
const target = join(root, "src/dashboard/bundle");

/** A folder of the sources is one page; `shared/` is what they have in common. */
const pages = readdirSync(source, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "shared")
  .map(({ name }) => name)
  .sort();

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  version: string;
};

/** The layout of a page: its title, its script, and the link of the navigation that leads to it. */
function compose(name: string): string {
  return readFileSync(join(source, "shared/layout.html"), "utf8")
    .replaceAll("{name}", name)
    .replace("{title}", `${name.charAt(0).toUpperCase()}${name.slice(1)} · mds-sync`)
    .replace("{version}", version)
    .replace(`data-path="/${name}"`, 'aria-current="page"')
    .replaceAll(/ data-path="[^"]*"/g, "");
}

interface Bundle {
  /** By name. */
  readonly files: Map<string, Uint8Array>;
  /** What a browser loads for each page, compressed. */
  readonly bytesByPage: ReadonlyMap<string, number>;
  /** Paths of the bundled files, relative to the project. */
  readonly inputs: readonly string[];
}

async function bundlePages(): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    entryPoints: [
      ...pages.map((name) => ({ in: join(source, name, `${name}.tsx`), out: name })),
      { in: join(source, "shared/pages.css"), out: "pages" },
      { in: join(source, "shared/theme.ts"), out: "theme" },
    ],
    outdir: target,
    write: false,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "eof",
    loader: { ".md": "text" },
    chunkNames: "shared-[hash]",
    absWorkingDir: target,
    metafile: true,
  });
  const text = new TextEncoder();
  const files = new Map<string, Uint8Array>([
    ...outputFiles.map(({ path, contents }) => [relative(target, path), contents] as const),
    ...pages.map((name) => [`${name}.html`, text.encode(compose(name))] as const),
    ["favicon.svg", readFileSync(join(source, "shared/favicon.svg"))],
  ]);
  const importsOf = (file: string): string[] => [
    file,
    ...(metafile.outputs[file]?.imports ?? []).flatMap(({ path }) => importsOf(path)),
  ];
  const sizeOf = (name: string) => {
    const loaded = new Set([`${name}.html`, "pages.css", "theme.js", ...importsOf(`${name}.js`)]);
    return [...loaded].reduce((sum, file) => sum + gzipSync(files.get(file) ?? "").length, 0);
  };
  return {
    files,
    bytesByPage: new Map(pages.map((name) => [name, sizeOf(name)])),
    inputs: Object.keys(metafile.inputs).map((path) => relative(root, resolve(target, path))),
  };
}

const MAX_PAGE_KIB = 150;
/** Why a page may be larger. */
const EXCEPTIONS: Readonly<Record<string, string>> = { explore: "an SQL editor" };

function printSizes(bytesByPage: Bundle["bytesByPage"]): void {
  for (const [name, bytes] of bytesByPage) {
    const kib = bytes / 1024;
    const why = kib > MAX_PAGE_KIB ? (EXCEPTIONS[name] ?? "") : "";
    process.stdout.write(`${name.padEnd(12)}${kib.toFixed(1).padStart(7)} KiB compressed  ${why}\n`);
    if (kib > MAX_PAGE_KIB && !why)
      throw new Error(
        `the page ${name} is larger than ${MAX_PAGE_KIB} KiB: shrink it, or say why in EXCEPTIONS`,
      );
  }
}

/** Files that did not change are left alone: tests may serve them at this moment. */
export async function writePages(): Promise<Pick<Bundle, "files" | "inputs">> {
  // The build runs in it.
  mkdirSync(target, { recursive: true });
  const { files, bytesByPage, inputs } = await bundlePages();
  printSizes(bytesByPage);
  for (const file of readdirSync(target)) if (!files.has(file)) rmSync(join(target, file));
  for (const [file, bytes] of files) {
    const path = join(target, file);
    if (!existsSync(path) || !readFileSync(path).equals(bytes)) writeFileSync(path, bytes);
  }
  return { files, inputs };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await writePages();
