import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig } from "vitest/config";
import { findSystemTests } from "./test/support/system-tests.ts";

/** Tests that take seconds and kill no mutant that a faster test would not. */
const slowTests = ["test/service/pagination/full-window.test.ts", "test/ingest/thread/**"];

/** `npm run mutants`: the fast tests of the mutated folders, each in this process. */
export default defineConfig({
  resolve: {
    alias: [
      // Stryker neither activates mutants nor measures coverage in a worker thread.
      {
        find: /^.*\/ingest-thread\.ts$/,
        replacement: fileURLToPath(new URL("./test/mutants/in-process-ingest.ts", import.meta.url)),
      },
    ],
  },
  test: {
    include: ["**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...findSystemTests(import.meta.dirname), ...slowTests],
    setupFiles: ["test/support/seed.ts", "test/mutants/no-shrinking.ts"],
  },
});
