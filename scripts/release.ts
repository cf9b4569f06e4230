// npm run release: checks a version, packs it and the Python client's wheel into reports/, and says what is in the tarball. Publishes
// nothing. `--pack-only` leaves the checks out; `--wheel` (npm run wheel) makes the wheel alone.

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = resolve(import.meta.dirname, "..");
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

/** A Python that can build a wheel without a network. */
function findPython(): string {
  const named = process.env.PYTHON;
  const found = (named === undefined ? ["python3", "/usr/bin/python3"] : [named]).find(
    (python) => spawnSync(python, ["-c", "import setuptools, wheel, pip"]).status === 0,
  );
  if (found) return found;
  throw new Error(
    `${named ?? "python3"} has no pip, setuptools or wheel: install them, or name another in PYTHON`,
  );
}

/** Builds the Python client's wheel in a copy, which setuptools fills with its own files. Returns its path. */
export function buildWheel(folder = reports): string {
  const copy = mkdtempSync(join(tmpdir(), "mds-wheel-"));
  try {
    cpSync(join(root, "clients/python"), join(copy, "source"), {
      recursive: true,
      filter: (path) => !/__pycache__|\.egg-info|\/build$/.test(path),
    });
    const options = "--quiet --no-deps --no-index --no-build-isolation --disable-pip-version-check";
    const args = [
      "-m",
      "pip",
      "wheel",
      ...options.split(" "),
      "--wheel-dir",
      join(copy, "wheel"),
      "./source",
    ];
    // The same sources give the same bytes.
    const env = { ...process.env, SOURCE_DATE_EPOCH: "315532800" };
    execFileSync(findPython(), args, {
      cwd: copy,
      env,
      stdio: ["ignore", 2, "inherit"],
    });
    const [wheel = ""] = readdirSync(join(copy, "wheel"));
    mkdirSync(folder, { recursive: true });
    cpSync(join(copy, "wheel", wheel), join(folder, wheel));
    return join(folder, wheel);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
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
  if (process.argv.includes("--wheel")) {
    print(buildWheel());
    return;
  }
  const isChecked = !process.argv.includes("--pack-only");
  if (isChecked) {
    const uncommitted = execFileSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
    const problems = findProblems(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version, uncommitted);
    for (const problem of problems)
      process.stderr.write(`${name} ${version} cannot be released: ${problem}\n`);
    if (problems.length > 0) process.exit(1);
    for (const script of ["lint", "test", "test:long", "test:system"])
      execFileSync("npm", ["run", script], { cwd: root, stdio: "inherit" });
  }
  print(`${name} ${version}\n`);
  describe(pack());
  print(`\n${buildWheel()}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) release();
