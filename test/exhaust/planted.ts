import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";

// npm run planted: plants each defect of test/exhaust/planted in a copy of the sources, and shows what the exhaustive check
// says about it: the first violation in the worlds of the part of the rule that it changes. Fails if it misses one, or if a patch no
// longer fits the sources.

const patches = "test/exhaust/planted";
const only = process.argv[2] ?? "";
const print = (text: string) => process.stdout.write(`${text}\n`);

interface Finding {
  readonly isFound: boolean;
  /** The number of steps of the violation; undefined: only a function alone shows it. */
  readonly steps?: number | undefined;
  readonly what: string;
  readonly seconds: number;
}

const worldsOf = (patch: string) =>
  /^\+\+\+ .*rule\/(snapshot|live-period)|shorter snapshot/m.test(readFileSync(patch, "utf8"))
    ? "snapshots"
    : "histories";

function plant(patch: string): Finding {
  const folder = mkdtempSync(join(tmpdir(), "mds-sync-planted-"));
  try {
    for (const name of ["src", "test/exhaust", "test/support/rule", "package.json"])
      cpSync(name, join(folder, name), { recursive: true });
    symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
    const applied = spawnSync("git", ["apply", "--unidiff-zero", resolve(patch)], {
      cwd: folder,
      encoding: "utf8",
    });
    if (applied.status !== 0) return { isFound: false, what: applied.stderr.trim(), seconds: 0 };
    const started = performance.now();
    const run = spawnSync(process.execPath, ["test/exhaust/run.ts", "mutants", worldsOf(patch)], {
      cwd: folder,
      encoding: "utf8",
    });
    const seconds = (performance.now() - started) / 1000;
    if (run.status === 0) return { isFound: false, what: "NOT FOUND", seconds };
    const [, violation] = /^ {2}"(.*)": \{$/m.exec(run.stdout) ?? [];
    const [, difference] = /^differs: ([^:]*(?:: [a-z]+)?):/m.exec(run.stdout) ?? [];
    const steps = run.stdout.match(/^ {6}\[/gm)?.length;
    const what = violation ?? (difference && `${difference} alone differs from its specification`);
    const failed = `failed: ${run.stderr.trim().split("\n").at(-1)}`;
    return { isFound: what !== undefined, steps, what: what ?? failed, seconds };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const row = (cells: readonly string[]) =>
  print(cells.map((cell, i) => cell.padEnd([38, 7, 9][i] ?? 0)).join(""));
row(["defect", "steps", "seconds", "found as"]);
for (const name of readdirSync(patches).sort()) {
  if (!name.includes(only)) continue;
  const { isFound, steps, what, seconds } = plant(join(patches, name));
  if (!isFound) process.exitCode = 1;
  row([basename(name, ".patch"), String(steps ?? "-"), seconds.toFixed(1), what]);
}
