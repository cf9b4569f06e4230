import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    setupFiles: ["test/support/seed.ts"],
    globalSetup: ["test/support/print-seed.ts"],
    testTimeout: 30_000,
  },
});
