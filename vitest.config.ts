import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.ts";
import { calibrate, timeLimit } from "./test/support/time-limit.ts";

calibrate();
// Sources that workers, threads and processes of the tests run in place are compiled once for all of them.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "mds-sync-compiled-tests");

/** The options of every test file. */
const options = {
  pool: "forks" as const,
  // Node runs the sources itself, as in production: no worker waits for Vite to transform them.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  setupFiles: ["test/support/seed.ts", "test/support/set-up-file.ts"],
  // Real processes and their real waits: a slow machine is no failure, a hang still is.
  testTimeout: timeLimit(120_000),
  hookTimeout: timeLimit(120_000),
};

/** The files that measure the memory of their process, or cannot undo what they change in it. */
const OWN_PROCESS = "test/**/*.process.test.ts";

/** The files that test the program from outside: installed, in a browser, killed, under limits of the system. */
const SYSTEM = "test/**/*.system.test.ts";

/** The files that prove with many worlds, kills or whole exports what shorter ones show by example. */
const LONG = "test/**/*.long.test.ts";

export default defineConfig({
  test: {
    // For the set-up too.
    experimental: options.experimental,
    globalSetup: ["test/support/set-up-run.ts", "test/support/build-program.ts"],
    // A fifth of the time goes in waiting for real processes, sockets and disks: half as many files again as there are cores.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    sequence: { sequencer: SlowestFirst },
    projects: [
      { test: { ...options, name: "own-process", include: [OWN_PROCESS] } },
      {
        test: {
          ...options,
          name: "system",
          include: [SYSTEM],
          isolate: false,
        },
      },
      {
        // Each worker loads the sources once for all the files that it runs.
        test: {
          ...options,
          name: "shared-process",
          include: ["test/**/*.test.ts"],
          exclude: [OWN_PROCESS, SYSTEM, LONG],
          isolate: false,
        },
      },
      { test: { ...options, name: "long", include: [LONG], isolate: false } },
    ],
  },
});
