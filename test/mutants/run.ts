import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { checkSurvivors, describeMutant, type TriedMutant } from "./check-survivors.ts";
import { explainedMutants } from "./explained/all.ts";

// npm run mutants: all four folders. npm run mutants -- --mutate 'src/model/**': one folder, one file, or lines of a file
// (`src/model/time.ts:10-40`). --incremental: reuse results of the last such run where neither the code nor its tests
// changed.

type Options = NonNullable<ConstructorParameters<typeof Stryker>[0]>;
type MutantResult = Awaited<ReturnType<Stryker["runMutationTest"]>>[number];

/** Each folder and its tests: they are fast, and a folder's own tests should suffice. */
const testFolders: Readonly<Record<string, string>> = {
  "src/model": "test/model",
  // The tests of the ingest thread commit pages too.
  "src/ingest/commit": "test/ingest/{commit,thread}",
  "src/warehouse/coverage": "test/warehouse/coverage",
  "src/service/pagination": "test/service/pagination",
};
const folders = Object.keys(testFolders);
/** Constants from the first line to the last: docs and migrations hold every entry. */
const tableFiles = ["src/model/stream-columns.ts"];
const MIN_SCORE_PERCENT = 90;

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
  options: {
    mutate: { type: "string", multiple: true },
    concurrency: { type: "string" },
    incremental: { type: "boolean", default: false },
  },
});

/** Stryker does not know the tests of a constant, so it would not try the survivors again when they change. */
function forgetSurvivingConstants(incrementalFile: string): void {
  if (!existsSync(incrementalFile)) return;
  type Mutant = Pick<MutantResult, "static" | "status">;
  const report = JSON.parse(readFileSync(incrementalFile, "utf8")) as {
    files: Record<string, { mutants: Mutant[] }>;
  };
  for (const file of Object.values(report.files))
    file.mutants = file.mutants.filter((mutant) => !(mutant.static && mutant.status === "Survived"));
  writeFileSync(incrementalFile, JSON.stringify(report));
}

async function runFolder(folder: string, mutate: readonly string[]): Promise<MutantResult[]> {
  process.env.MDS_MUTANTS_TESTS = testFolders[folder];
  const report = `reports/mutants/${folder.replaceAll("/", "-")}`;
  const incrementalFile = `${report}.incremental.json`;
  if (values.incremental) forgetSurvivingConstants(incrementalFile);
  const stryker = new Stryker({
    ...options,
    mutate: [...mutate, ...tableFiles.map((file) => `!${file}`)],
    incrementalFile,
    htmlReporter: { fileName: `${report}.html` },
    reporters: ["html", process.stdout.isTTY ? "progress" : "progress-append-only"],
    incremental: values.incremental,
    ...(values.concurrency === undefined ? {} : { concurrency: Number(values.concurrency) }),
  });
  const results = await stryker.runMutationTest();
  return results.map((result) => ({ ...result, fileName: relative(process.cwd(), result.fileName) }));
}

const sources = new Map<string, readonly string[]>();
function sourceLine(file: string, lineNumber: number): string {
  const lines = sources.get(file) ?? readFileSync(file, "utf8").split("\n");
  sources.set(file, lines);
  return lines[lineNumber - 1]?.trim() ?? "";
}

function toTriedMutant({ fileName, location, mutatorName, replacement = "" }: MutantResult): TriedMutant {
  const lineNumber = location.start.line;
  return {
    file: fileName,
    lineNumber,
    line: sourceLine(fileName, lineNumber),
    mutant: describeMutant(mutatorName, replacement),
  };
}

const print = (text: string) => process.stdout.write(`${text}\n`);
const columns = ["killed", "timeout", "survived", "no coverage", "explained", "score"] as const;

function printRow(name: string, cells: readonly (string | number)[]): void {
  print(name.padEnd(26) + cells.map((cell) => String(cell).padStart(13)).join(""));
}

let isPassed = true;
const rows: { name: string; cells: readonly (string | number)[] }[] = [];

function judge(name: string, results: readonly MutantResult[], explained: number): void {
  const count = (status: MutantResult["status"]) => results.filter((each) => each.status === status).length;
  const [killed, timeout] = [count("Killed"), count("Timeout")];
  const [survived, noCoverage] = [count("Survived"), count("NoCoverage")];
  const score = (100 * (killed + timeout)) / (killed + timeout + survived + noCoverage);
  if (score < MIN_SCORE_PERCENT) isPassed = false;
  rows.push({ name, cells: [killed, timeout, survived, noCoverage, explained, `${score.toFixed(1)} %`] });
}

const patterns = values.mutate ?? folders.map((folder) => `${folder}/**/*.ts`);
const hasLineRanges = patterns.some((pattern) => /:\d+/.test(pattern));
const all: MutantResult[] = [];
let allExplained = 0;
for (const folder of folders) {
  const own = patterns.filter((pattern) => pattern.startsWith(`${folder}/`));
  if (own.length === 0) continue;
  const results = await runFolder(folder, own);
  const survivors = results.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  const { explained, unexplained, killed, stale } = checkSurvivors(
    results.map(toTriedMutant),
    survivors.map(toTriedMutant),
    explainedMutants,
  );
  for (const { file, lineNumber, line, mutant } of unexplained)
    print(`survived: ${file}:${lineNumber}\n  ${line}\n  ${mutant}`);
  for (const { file, line, mutant } of killed)
    print(`explained, but killed: ${file}\n  ${line}\n  ${mutant}`);
  // Lines of a file are only a part of its mutants.
  const missing = hasLineRanges ? [] : stale;
  for (const { file, line, mutant } of missing)
    print(`explained, but not found: ${file}\n  ${line}\n  ${mutant}`);
  if (unexplained.length + missing.length > 0) isPassed = false;
  judge(folder, results, explained.length);
  all.push(...results);
  allExplained += explained.length;
}
if (rows.length > 1) judge("all", all, allExplained);
printRow("", columns);
for (const { name, cells } of rows) printRow(name, cells);
if (rows.length === 0) print(`no pattern names a file in ${folders.join(", ")}`);
process.exitCode = isPassed && rows.length > 0 ? 0 : 1;
