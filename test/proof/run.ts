import { fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { ProofOutcome } from "./prove.ts";

// npm run proof: a thousand schedules. npm run proof -- --seed 17: one schedule with all details.
const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    from: { type: "string" },
    count: { type: "string" },
    workers: { type: "string" },
  },
});
// One more than there are cores: a schedule waits for its sockets a tenth of the time.
const workers = Number(values.workers ?? availableParallelism() + 1);

if (values.seed !== undefined) {
  const [{ prove }, { drawSchedule }] = await Promise.all([import("./prove.ts"), import("./schedule.ts")]);
  const seed = Number(values.seed);
  process.stdout.write(`${JSON.stringify(drawSchedule(seed), null, 2).replaceAll("\\n", "\n")}\n`);
  const outcome = await prove(seed);
  process.stdout.write(`${JSON.stringify(outcome, null, 2).replaceAll("\\n", "\n")}\n`);
  process.exit(outcome.problems.length === 0 ? 0 : 1);
}

const first = Number(values.from ?? 1);
const count = Number(values.count ?? 1000);
const startedAt = process.hrtime.bigint();
const seeds = Array.from({ length: count }, (_, index) => first + index);
const failed: number[] = [];
let passed = 0;
let struck = 0;
let rows = 0;

async function runWorker(): Promise<void> {
  for (let seed = seeds.shift(); seed !== undefined; ) {
    const worker = fork(new URL("./worker.ts", import.meta.url), {
      // A schedule allocates 80 MB, nearly all short-lived: most of it dies before the young generation is full. And it runs
      // much code a few times only: baseline code at once costs less than interpreting it first.
      execArgv: ["--min-semi-space-size=64", "--max-semi-space-size=64", "--always-sparkplug"],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      // Ingest threads load every module again: they find it compiled.
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "mds-sync-compiled-proof") },
    });
    const ended = once(worker, "exit");
    let isUp = true;
    while (seed !== undefined && isUp) {
      worker.send(seed);
      const answer = await Promise.race([once(worker, "message"), ended.then(() => undefined)]);
      isUp = answer !== undefined;
      recordOutcome((answer?.[0] as ProofOutcome | undefined) ?? crashedOutcome(seed));
      seed = seeds.shift();
    }
    if (isUp) worker.disconnect();
    await ended;
  }
}

function crashedOutcome(seed: number): ProofOutcome {
  return { seed, problems: ["the process crashed or hung"], struck: 0, requests: 0, rows: 0, exits: [] };
}

function recordOutcome({ seed, problems, struck: faultCount, rows: rowCount, exits }: ProofOutcome): void {
  struck += faultCount;
  rows += rowCount;
  if (problems.length === 0) {
    passed++;
  } else {
    failed.push(seed);
    process.stdout.write(
      `seed ${seed} failed (${exits.join(", ")}):\n  ${problems.join("\n").replaceAll("\n", "\n  ")}\n`,
    );
  }
  const done = passed + failed.length;
  if (done % 50 === 0) process.stdout.write(`${done} of ${count} schedules, ${failed.length} failed\n`);
}

await Promise.all(Array.from({ length: workers }, runWorker));
const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
process.stdout.write(
  `${passed} of ${count} schedules matched the service: ${struck} faults struck, ${rows} rows compared, ` +
    `${Math.round(seconds)} s, ${(count / seconds).toFixed(2)} schedules/s on ${workers} processes\n`,
);
if (failed.length > 0) {
  process.stdout.write(
    `failed seeds: ${failed.sort((a, b) => a - b).join(" ")}\nrepeat one: npm run proof -- --seed ${failed[0]}\n`,
  );
  process.exitCode = 1;
}
