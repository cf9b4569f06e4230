import { relative } from "node:path";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { survivorLine } from "./survivor-line.ts";

// npm run mutants: all four folders. npm run mutants -- --mutate 'src/model/**': one folder, one file, or lines of a file
// (`src/model/time.ts:10-40`).

type Options = NonNullable<ConstructorParameters<typeof Stryker>[0]>;
type MutantResult = Awaited<ReturnType<Stryker["runMutationTest"]>>[number];

/** Each folder with its tests, which are fast and should suffice, and the share of its mutants that they must notice. */
const folders: Readonly<Record<string, { readonly tests: string; readonly minPercent: number }>> = {
  "src/model": { tests: "test/model", minPercent: 90 },
  // The tests of the ingest thread commit pages too.
  "src/ingest/commit": { tests: "test/ingest/{commit,thread}", minPercent: 90 },
  "src/warehouse/coverage": { tests: "test/warehouse/coverage", minPercent: 90 },
  "src/service/pagination": { tests: "test/service/pagination", minPercent: 90 },
};
/** Constants from the first line to the last: docs and migrations hold every entry. */
const tableFiles = ["src/model/stream-columns.ts"];

/** What all folders share. */
const options = {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner", "./test/mutants/ignored-code.ts"],
  vitest: { configFile: "test/mutants/vitest.config.ts", related: false },
  // Not mutated: sentences for people (tests assert the code of a failure, not its wording) and tables of constants.
  ignorers: ["prose-and-tables"],
  // Without tsconfig.json Stryker needs no compiler: the sandbox lies in the project and finds the one above.
  ignorePatterns: ["dist", "data", ".biome.json", "tsconfig.json"],
  coverageAnalysis: "perTest",
  concurrency: 2,
  // On top of one and a half times the tests' own time. Stryker's hit counter stops most endless loops earlier.
  timeoutMS: 10_000,
  cleanTempDir: "always",
  logLevel: "warn" as Options["logLevel"],
} satisfies Options;

const { values } = parseArgs({
  options: { mutate: { type: "string", multiple: true }, concurrency: { type: "string" } },
});
const patterns = values.mutate ?? Object.keys(folders).map((folder) => `${folder}/**/*.ts`);

async function runFolder(folder: string, tests: string, mutate: readonly string[]): Promise<MutantResult[]> {
  process.env.MDS_MUTANTS_TESTS = tests;
  const stryker = new Stryker({
    ...options,
    mutate: [...mutate, ...tableFiles.map((file) => `!${file}`)],
    htmlReporter: { fileName: `reports/mutants/${folder.replaceAll("/", "-")}.html` },
    reporters: ["html", process.stdout.isTTY ? "progress" : "progress-append-only"],
    ...(values.concurrency === undefined ? {} : { concurrency: Number(values.concurrency) }),
  });
  return stryker.runMutationTest();
}

const print = (text: string) => process.stdout.write(`${text}\n`);
const report: string[] = [];
process.exitCode = 0;
for (const [folder, { tests, minPercent }] of Object.entries(folders)) {
  const own = patterns.filter((pattern) => pattern.startsWith(`${folder}/`));
  if (own.length === 0) continue;
  const results = await runFolder(folder, tests, own);
  const noticed = results.filter(({ status }) => status === "Killed" || status === "Timeout");
  const survivors = results.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  for (const { fileName, location, mutatorName, replacement } of survivors)
    print(survivorLine(relative(process.cwd(), fileName), location.start.line, mutatorName, replacement));
  const tried = noticed.length + survivors.length;
  const percent = (100 * noticed.length) / tried;
  if (!(percent >= minPercent)) process.exitCode = 1;
  report.push(
    `${folder.padEnd(24)}${percent.toFixed(1).padStart(6)} % of ${tried} mutants noticed, at least ${minPercent} %`,
  );
}
print(
  report.length > 0 ? report.join("\n") : `no pattern names a file in ${Object.keys(folders).join(", ")}`,
);
if (report.length === 0) process.exitCode = 1;
