import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { readProjectFile, root } from "../support/repository.ts";

const MAX_FILES_IN_A_FOLDER = 17;
const source = join(root, "src");

const belowDaemon = [
  ...["dashboard", "serve", "sync", "export", "share", "simulator", "ingest", "service", "warehouse"],
  ...["telemetry", "config", "model", "runtime"],
];

/** The rooms (top-level folders of src, and the pages) that each room may import. Imports go downward only. */
const ALLOWED_IMPORTS: Record<string, string[]> = {
  model: [],
  runtime: ["model/failure.ts"],
  "api-server": ["model", "runtime"],
  simulator: ["api-server", "model/streams.ts", "runtime/clock.ts", "runtime/log.ts"],
  config: ["model"],
  telemetry: ["model", "runtime"],
  service: ["rule", "model", "runtime"],
  rule: ["model"],
  warehouse: ["rule", "model", "runtime"],
  ingest: ["warehouse", "rule", "model", "runtime"],
  sync: ["ingest", "service", "warehouse", "rule", "model", "runtime"],
  export: ["warehouse", "model", "runtime"],
  share: ["warehouse", "rule", "model", "runtime"],
  library: ["warehouse", "model", "runtime"],
  serve: ["api-server", "warehouse", "rule", "model", "runtime"],
  dashboard: ["library", "warehouse", "telemetry", "model", "runtime"],
  "dashboard/page": ["model"],
  daemon: belowDaemon,
  cli: ["library", "daemon", ...belowDaemon],
};

/** The rooms that a room may import with `import type` alone: such an import does not exist at run time. */
const ALLOWED_TYPE_IMPORTS: Record<string, string[]> = {
  telemetry: ["service"],
  "dashboard/page": ["dashboard/api-answers.ts"],
};

/** Packages that only these rooms may import. */
const IMPORTERS: Record<string, string[]> = {
  "better-sqlite3": ["warehouse"],
  "drizzle-orm": ["warehouse"],
  "@uwdata": ["library"],
  undici: ["service", "export"],
  commander: ["cli"],
  yaml: ["config", "warehouse"],
  "@duckdb": ["export"],
  aws4fetch: ["export"],
  croner: ["config", "daemon"],
  pg: ["share"],
  "pg-copy-streams": ["share"],
  // Only for browsers, and not installed with the package: the bundle contains them.
  "@codemirror": ["dashboard/page"],
  "@lezer": ["dashboard/page"],
  "d3-hierarchy": ["dashboard/page"],
  "lightweight-charts": ["dashboard/page"],
  preact: ["dashboard/page"],
  uplot: ["dashboard/page"],
};

/** `response.setTimeout` is not a timer: it limits how long a socket may be idle. */
const clockPattern =
  /\b(Date\.now|new Date\(\)|performance\.now|process\.hrtime|(?<!\bresponse\.)setTimeout|setInterval|setImmediate)\b|node:timers/;

interface Import {
  from: string;
  to: string;
  isTypeOnly: boolean;
}

const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file))
  .map(normalize);

const text = new Map(files.map((file) => [file, readFileSync(join(source, file), "utf8")]));

const imports: Import[] = files.flatMap((from) =>
  [
    ...(text.get(from) ?? "").matchAll(
      /(?:(^import type\b[^"]*)|from\s+|import\s*\(\s*|import\s+|new URL\(\s*)"([^"]+)"/gm,
    ),
  ].map(([, typeImport, specifier = ""]) => ({
    from,
    to: specifier.startsWith(".") ? normalize(join(dirname(from), specifier)) : specifier,
    isTypeOnly: typeImport !== undefined,
  })),
);
const internalImports = imports.filter(({ to }) => text.has(to));

const roomOf = (file: string) => {
  return file.startsWith("dashboard/page/") ? "dashboard/page" : (file.split("/")[0] ?? file);
};

describe("the source tree", () => {
  it("has only rooms that these rules list", () => {
    expect([...new Set(files.map(roomOf))].filter((room) => !(room in ALLOWED_IMPORTS))).toEqual([]);
  });

  it("imports downward only", () => {
    const upward = internalImports.filter(({ from, to, isTypeOnly }) => {
      const typesOnly = isTypeOnly ? (ALLOWED_TYPE_IMPORTS[roomOf(from)] ?? []) : [];
      const allowed = [...(ALLOWED_IMPORTS[roomOf(from)] ?? []), ...typesOnly];
      return roomOf(from) !== roomOf(to) && !allowed.includes(roomOf(to)) && !allowed.includes(to);
    });
    expect(upward).toEqual([]);
  });

  it("changes the ledger in one place, and decides about it in the rule", () => {
    const writesLedger =
      /(INSERT INTO|REPLACE INTO|DELETE FROM|UPDATE) settled_ranges\b|\b(insert|update|delete)\(settledRanges\)/;
    const writers = files.filter((file) => writesLedger.test(text.get(file) ?? ""));
    expect(writers).toEqual(["warehouse/coverage/ledger.ts"]);
    const deciders = files.filter((file) => /kind: "(settle|retract|withdraw)"/.test(text.get(file) ?? ""));
    expect(deciders.filter((file) => roomOf(file) !== "rule")).toEqual([]);
  });

  it("has no import cycles", () => {
    const cycles: string[] = [];
    const done = new Set<string>();
    const visit = (file: string, path: string[]) => {
      if (path.includes(file)) return void cycles.push([...path.slice(path.indexOf(file)), file].join(" → "));
      if (done.has(file)) return;
      for (const { to } of internalImports.filter(({ from }) => from === file)) visit(to, [...path, file]);
      done.add(file);
    };
    for (const file of files) visit(file, []);
    expect(cycles).toEqual([]);
  });

  it("has no barrels, except the entries of the package, which no source file imports", () => {
    const { exports } = JSON.parse(readProjectFile("package.json")) as {
      exports: Record<string, string | { types: string }>;
    };
    const entries = Object.values(exports)
      .flatMap((entry) => (typeof entry === "string" ? [] : [entry.types]))
      .map((path) => path.replace("./dist/types/", "").replace(/\.d\.ts$/, ".ts"));
    expect(entries.filter((entry) => !text.has(entry))).toEqual([]);
    expect(imports.filter(({ to }) => entries.includes(to))).toEqual([]);
    const barrels = files.filter(
      (file) =>
        /(^|\/)index\.tsx?$/.test(file) || /^export (type )?(\*|\{[^}]*\}) from/m.test(text.get(file) ?? ""),
    );
    expect(barrels.filter((file) => !entries.includes(file))).toEqual([]);
  });

  it("reads clocks and sets timers only in runtime/, and in the pages", () => {
    const offenders = files.filter(
      (file) =>
        !["runtime", "dashboard/page"].includes(roomOf(file)) && clockPattern.test(text.get(file) ?? ""),
    );
    expect(offenders).toEqual([]);
  });

  it("imports each library only in its rooms", () => {
    const violations = imports.filter(({ from, to }) => {
      const rooms = IMPORTERS[to.split("/")[0] ?? ""];
      return rooms !== undefined && !rooms.includes(roomOf(from));
    });
    expect(violations).toEqual([]);
  });

  // As ES modules drizzle takes 0.7 s of CPU and 190 MiB in each thread: only the schema is written with it, and row types need none.
  it("loads drizzle and the schema for its users alone", () => {
    const isSchema = /^warehouse\/schema\/(coverage|lookups|rows|stream-schema)\.ts$/;
    const loaders = imports.filter(
      ({ from, to, isTypeOnly }) =>
        !isTypeOnly && !isSchema.test(from) && (to.startsWith("drizzle-orm") || isSchema.test(to)),
    );
    expect([...new Set(loaders.map(({ from }) => from))]).toEqual(["library/schema.ts"]);
  });

  it("has no file of more than 450 lines", () => {
    const tests = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".ts"),
    );
    const lengths = [
      ...files.map((file) => join(source, file)),
      ...tests.map((file) => join(root, "test", file)),
    ].map((file) => [relative(root, file), readFileSync(file, "utf8").split("\n").length] as const);
    expect(lengths.filter(([, lines]) => lines > 450)).toEqual([]);
  });
});

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
