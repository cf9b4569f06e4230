import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.ts";
import { findIsolatedTests, findSystemTests } from "./test/support/system-tests.ts";
import { calibrate, timeLimit } from "./test/support/time-limit.ts";

const root = import.meta.dirname;
calibrate();

/** The options of every test file. */
const options = {
  pool: "forks" as const,
  // Node runs the sources itself, as in production: no worker waits for Vite to transform them.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  setupFiles: ["test/support/seed.ts"],
  // Sources that threads and processes of the tests run in place are compiled once for all of them.
  env: { NODE_COMPILE_CACHE: join(tmpdir(), "mds-sync-compiled-tests") },
  // Real processes and their real waits: a slow machine is no failure, a hang still is.
  testTimeout: timeLimit(120_000),
  hookTimeout: timeLimit(120_000),
};

/** `isUnit`: without the tests that start processes or a whole sync. */
export function configure({ isUnit }: { readonly isUnit: boolean }) {
  const left = isUnit ? findSystemTests(root) : [];
  const isolated = findIsolatedTests(root);
  return defineConfig({
    test: {
      // For the set-up too.
      experimental: options.experimental,
      globalSetup: ["test/support/set-up-run.ts", "test/support/dashboard/bundle-pages.ts"],
      // A fifth of the time goes in waiting for real processes, sockets and disks: half as many files again as there are cores.
      maxWorkers: Math.ceil(availableParallelism() * 1.5),
      sequence: { sequencer: SlowestFirst },
      projects: [
        {
          test: {
            ...options,
            name: "own-process",
            include: isolated.filter((file) => !left.includes(file)),
          },
        },
        {
          // These load the sources once for many files.
          test: {
            ...options,
            name: "shared-process",
            include: ["test/**/*.test.ts"],
            exclude: [...isolated, ...left],
            isolate: false,
          },
        },
      ],
    },
  });
}

export default configure({ isUnit: false });
