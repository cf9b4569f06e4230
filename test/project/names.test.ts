import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const source = resolve(import.meta.dirname, "../../src");
const MAX_FILES_IN_A_FOLDER = 17;

const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) =>
  /\.tsx?$/.test(file),
);
const text = new Map(files.map((file) => [file, readFileSync(join(source, file), "utf8")]));

describe("folders and names", () => {
  it(`has at most ${MAX_FILES_IN_A_FOLDER} source files in a folder`, () => {
    const counts = Map.groupBy(files, dirname);
    expect(
      [...counts].filter(([, members]) => members.length > MAX_FILES_IN_A_FOLDER).map(([name]) => name),
    ).toEqual([]);
  });

  it("declares each exported name in one file only", () => {
    const declarations = files.flatMap((file) =>
      [
        ...(text.get(file) ?? "").matchAll(
          /^export (?:abstract |async )?(?:class|function\*?|interface|type|const|let) (\w+)/gm,
        ),
      ].map(([, name = ""]) => ({ name, file })),
    );
    const twice = [...Map.groupBy(declarations, ({ name }) => name)]
      .map(([name, places]) => ({ name, files: [...new Set(places.map(({ file }) => file))] }))
      .filter(({ files }) => files.length > 1);
    expect(twice).toEqual([]);
  });

  it("mirrors the folders of src/ in test/", () => {
    const tests = resolve(import.meta.dirname, "..");
    const ownFolders = new Set([
      "bench",
      "clients",
      "crash",
      "docs",
      "exhaust",
      "mutants",
      "project",
      "proof",
      "scenario",
      "support",
    ]);
    // Folders without tests of their own, such as that of the simulator's faults, serve the others.
    const folders = readdirSync(tests, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
      .map((entry) => entry.parentPath.slice(tests.length + 1))
      .filter((folder) => !ownFolders.has(folder.split("/")[0] ?? ""));
    expect(folders.filter((folder) => !files.some((file) => file.startsWith(`${folder}/`)))).toEqual([]);
  });
});
