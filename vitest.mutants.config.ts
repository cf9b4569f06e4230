import { configDefaults, defineConfig } from "vitest/config";
import { FastestFirst } from "./test/mutants/fastest-first.ts";
import { findIsolatedTests, findSystemTests } from "./test/support/system-tests.ts";

const root = import.meta.dirname;

/** Tests that take seconds and kill no mutant that a faster test would not. */
const slowTests = [
  "test/service/pagination/all-faults.test.ts",
  "test/service/pagination/full-window.test.ts",
  "test/service/pagination/walk-faults.test.ts",
  "test/ingest/thread/storage-faults.test.ts",
];

/** The folder whose tests to run, set by test/mutants/run.ts. */
const { MDS_MUTANTS_TESTS: folder = "test" } = process.env;

const skipped = new Set([...findSystemTests(root), ...slowTests]);
const isolated = findIsolatedTests(root).filter(
  (file) => file.startsWith(`${folder}/`) && !skipped.has(file),
);

/** `npm run mutants`: the fast tests of one folder, without other threads. */
export default defineConfig({
  test: {
    include: [`${folder}/**/*.test.ts`],
    exclude: [...configDefaults.exclude, ...skipped],
    // One process a mutant instead of one a test file, where the tests allow it.
    isolate: isolated.length > 0,
    // A slow machine kills no mutant: Stryker has its own timeout.
    testTimeout: 120_000,
    sequence: { sequencer: FastestFirst },
    setupFiles: ["test/support/seed.ts", "test/mutants/no-shrinking.ts", "test/mutants/ingest-in-process.ts"],
  },
});
