// Bundles the pages of the dashboard into src/dashboard/bundle/, which the daemon serves as it is. `npm run build` copies it into dist/.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const source = resolve(import.meta.dirname, "src/dashboard/page");
const target = resolve(import.meta.dirname, "src/dashboard/bundle");

/** A folder of the sources is one page; `shared/` is what they have in common. */
const pages = readdirSync(source, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "shared")
  .map(({ name }) => name)
  .sort();

/** Puts a page into the layout: its title, its main part, and the link of the navigation that leads to it. */
function compose(name: string): string {
  const layout = readFileSync(join(source, "shared/layout.html"), "utf8");
  const page = readFileSync(join(source, name, `${name}.html`), "utf8");
  const [, title = "", main = ""] = /^<title>(.*)<\/title>\n(.*)$/s.exec(page) ?? [];
  const path = name === "overview" ? "/" : `/${name}`;
  return layout
    .replaceAll("{name}", name)
    .replace("{title}", title)
    .replace("{main}", () => main.trim())
    .replace(`data-path="${path}"`, 'aria-current="page"')
    .replaceAll(/ data-path="[^"]*"/g, "");
}

/** Builds every page; returns the files by name. */
async function bundlePages(): Promise<Map<string, Uint8Array>> {
  const { outputFiles } = await build({
    entryPoints: [
      ...pages.map((name) => ({ in: join(source, name, `${name}.ts`), out: name })),
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
  });
  const text = new TextEncoder();
  return new Map<string, Uint8Array>([
    ...outputFiles.map(({ path, contents }) => [relative(target, path), contents] as const),
    ...pages.map((name) => [`${name}.html`, text.encode(compose(name))] as const),
    ["favicon.svg", readFileSync(join(source, "shared/favicon.svg"))],
  ]);
}

/** Files that did not change are left alone: tests may serve them at this moment. */
export async function writePages(): Promise<Map<string, Uint8Array>> {
  const files = await bundlePages();
  mkdirSync(target, { recursive: true });
  for (const file of readdirSync(target)) if (!files.has(file)) rmSync(join(target, file));
  for (const [file, bytes] of files) {
    const path = join(target, file);
    if (!existsSync(path) || !readFileSync(path).equals(bytes)) writeFileSync(path, bytes);
  }
  return files;
}

function printSizes(files: ReadonlyMap<string, Uint8Array>): void {
  const kib = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`.padStart(11);
  for (const [file, bytes] of files)
    process.stdout.write(`${file.padEnd(24)}${kib(bytes.length)}${kib(gzipSync(bytes).length)} gzip\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) printSizes(await writePages());
