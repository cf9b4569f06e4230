/** What all folders of `npm run mutants` share; test/mutants/run.ts adds the rest. */
export default {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner", "./test/mutants/ignored-code.ts"],
  vitest: { configFile: "vitest.mutants.config.ts", related: false },
  // Not mutated: sentences for people (tests assert the code of a failure, not its wording) and tables of constants.
  ignorers: ["prose-and-tables"],
  // Without tsconfig.json Stryker needs no compiler: the sandbox lies in the project and finds the one above.
  ignorePatterns: ["dist", "data", "biome.json", "tsconfig.json"],
  coverageAnalysis: "perTest",
  concurrency: 2,
  // On top of one and a half times the tests' own time. Stryker's hit counter stops most endless loops earlier.
  timeoutMS: 10_000,
  cleanTempDir: "always",
  logLevel: "warn",
};
