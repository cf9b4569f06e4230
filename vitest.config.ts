import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    setupFiles: ["test/support/seed.ts"],
    globalSetup: ["test/support/set-up-run.ts", "test/support/dashboard/bundle-pages.ts"],
    // A fifth of the time goes in waiting for real processes, sockets and disks: half as many files again as there are cores.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // Sources that threads and processes of the tests run in place are compiled once for all of them.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "mds-sync-compiled-tests") },
    sequence: { sequencer: SlowestFirst },
    // Real processes and their real waits: a slow machine is no failure, a hang still is.
    testTimeout: 120_000,
  },
});
