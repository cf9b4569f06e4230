// npm run release: checks a version, packs it into reports/, and says what is in the tarball. Publishes nothing.
// `--pack-only` leaves the checks out.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const root = import.meta.dirname;
const reports = join(root, "reports");
const print = (text: string) => process.stdout.write(`${text}\n`);
const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  name: string;
  version: string;
};

/** What keeps a version from being released, as far as the changelog and the output of `git status --porcelain` tell. */
export function findProblems(changelog: string, released: string, uncommitted: string): string[] {
  const sections = changelog.split(/^## /m).slice(1);
  const hasDate = sections.some(
    (section) => section.startsWith(`${released} (2`) && /^\S+ \(\d{4}-\d\d-\d\d\)\n/.test(section),
  );
  const isAhead = sections.some((section) => /^Unreleased\n\s*\S/.test(section));
  return [
    ...(hasDate ? [] : [`CHANGELOG.md has no heading "${released} (YYYY-MM-DD)"`]),
    ...(isAhead ? ["CHANGELOG.md has changes under Unreleased"] : []),
    ...(uncommitted.trim() === "" ? [] : [`these files are not committed:\n${uncommitted.trimEnd()}`]),
  ];
}

interface Tarball {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly integrity: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

function pack(): Tarball {
  mkdirSync(reports, { recursive: true });
  const args = ["pack", "--json", "--pack-destination", reports];
  const output = execFileSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  // What `prepack` prints comes first.
  const [tarball] = JSON.parse(output.slice(output.indexOf("[\n"))) as [Tarball];
  return tarball;
}

const kib = (bytes: number) => `${Math.ceil(bytes / 1024).toLocaleString("en")} KiB`.padStart(11);

function describe({ filename, size, unpackedSize, integrity, files }: Tarball): void {
  const groups = Map.groupBy(files, ({ path }) => (path.includes("/") ? path.replace(/\/.*/, "/") : path));
  for (const [group, own] of [...groups].sort()) {
    const bytes = own.reduce((sum, file) => sum + file.size, 0);
    print(`${kib(bytes)}  ${group}${own.length > 1 ? ` (${own.length} files)` : ""}`);
  }
  print(`${kib(unpackedSize)}  in ${files.length} files; ${kib(size).trim()} packed`);
  print(`\n${join(reports, filename)}\n${integrity}`);
}

function release(): void {
  const isChecked = !process.argv.includes("--pack-only");
  if (isChecked) {
    const uncommitted = execFileSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
    const problems = findProblems(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version, uncommitted);
    for (const problem of problems)
      process.stderr.write(`${name} ${version} cannot be released: ${problem}\n`);
    if (problems.length > 0) process.exit(1);
    for (const script of ["test", "test:system", "sbom"])
      execFileSync("npm", ["run", script], { cwd: root, stdio: "inherit" });
  }
  print(`${name} ${version}\n`);
  describe(pack());
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) release();
