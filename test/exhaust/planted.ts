import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { defects } from "./planted-defects.ts";
import { copySources } from "./source-copy.ts";

// npm run planted: plants each defect in a copy of the sources, and shows what the exhaustive check says about it: the first violation
// in the worlds of the part of the rule that it changes. Fails if it misses one, or if a defect no longer fits the sources.

interface Finding {
  readonly isFound: boolean;
  /** The number of steps of the violation; undefined: only a function alone shows it. */
  readonly steps?: number | undefined;
  readonly what: string;
}

function plant(file: string, right: string, wrong: string): Finding {
  const parts = readFileSync(file, "utf8").split(right);
  if (parts.length !== 2) return { isFound: false, what: `${file} has ${parts.length - 1} times: ${right}` };
  using folder = copySources([{ name: file, content: parts.join(wrong) }]);
  const worlds = /snapshot|live-period/.test(`${file} ${right}`) ? "snapshots" : "histories";
  const run = spawnSync(process.execPath, ["test/exhaust/run.ts", "mutants", worlds], {
    cwd: folder.path,
    encoding: "utf8",
  });
  if (run.status === 0) return { isFound: false, what: "NOT FOUND" };
  const [, violation] = /^ {2}"(.*)": \{$/m.exec(run.stdout) ?? [];
  const [, difference] = /^differs: ([^:]*(?:: [a-z]+)?):/m.exec(run.stdout) ?? [];
  const steps = run.stdout.match(/^ {6}\[/gm)?.length;
  const what = violation ?? (difference && `${difference} alone differs from its specification`);
  const failed = `failed: ${run.stderr.trim().split("\n").at(-1)}`;
  return { isFound: what !== undefined, steps, what: what ?? failed };
}

const row = (...[defect, steps, seconds, what]: readonly string[]) =>
  process.stdout.write(`${defect?.padEnd(40)}${steps?.padEnd(7)}${seconds?.padEnd(9)}${what}\n`);
row("defect", "steps", "seconds", "found as");
const only = process.argv[2] ?? "";
for (const [file, own] of Object.entries(defects))
  for (const [name, right, wrong] of own.filter(([name]) => name.includes(only))) {
    const started = performance.now();
    const { isFound, steps, what } = plant(file, right, wrong);
    if (!isFound) process.exitCode = 1;
    row(name, String(steps ?? "-"), ((performance.now() - started) / 1000).toFixed(1), what);
  }
