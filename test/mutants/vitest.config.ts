import { configDefaults, defineConfig } from "vitest/config";
import { timeLimit } from "../support/time-limit.ts";
import { FastestFirst } from "./fastest-first.ts";

/** Tests that take seconds and kill no mutant that a faster test would not. */
const slowTests = [
  "test/service/pagination/all-faults.test.ts",
  "test/service/pagination/full-window.process.test.ts",
  "test/service/pagination/walk-faults.test.ts",
  "test/ingest/thread/storage-faults.long.test.ts",
  "test/ingest/commit/tick-columns.test.ts",
];

/** The folder whose tests to run, set by test/mutants/run.ts. */
const { MDS_MUTANTS_TESTS: folder = "test" } = process.env;

/** `npm run mutants`: the fast tests of one folder, without other threads. */
export default defineConfig({
  test: {
    include: [`${folder}/**/*.test.ts`],
    exclude: [...configDefaults.exclude, ...slowTests],
    // A slow machine kills no mutant: Stryker has its own timeout.
    testTimeout: timeLimit(120_000),
    sequence: { sequencer: FastestFirst },
    globalSetup: ["test/support/set-up-run.ts"],
    // Loading the sources again for each file takes longer than most tests.
    isolate: false,
    setupFiles: ["test/support/seed.ts", "test/support/set-up-file.ts", "test/mutants/no-shrinking.ts"],
  },
});
