import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    setupFiles: ["test/support/seed.ts"],
    globalSetup: ["test/support/print-seed.ts"],
    // Real processes and their real waits: a slow machine is no failure, a hang still is.
    testTimeout: 120_000,
  },
});
