import { execFile, execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWarehouse } from "../support/cli/filled-warehouse.ts";
import { startLocalRegistry } from "../support/cli/local-registry.ts";
import { fillTicks } from "../support/library/ticks-warehouse.ts";

const root = resolve(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/** Packs the project and installs the example project with it; returns where the package is. npm has no network here. */
async function installExample(folder: string): Promise<string> {
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz")) ?? "";
  cpSync(join(root, "examples/typescript"), example, { recursive: true });
  const registry = await startLocalRegistry(root, join(folder, tarball));
  try {
    // Without scripts, as a container installs; optional packages are the binaries of DuckDB, 100 MB that the tests do not use.
    const args = [
      "install",
      "--ignore-scripts",
      "--omit=optional",
      "--no-audit",
      "--no-fund",
      "--no-progress",
    ];
    const places = [`--registry=${registry.url}`, `--cache=${join(folder, "cache")}`];
    await promisify(execFile)("npm", [...args, ...places], { cwd: example });
  } finally {
    await registry.stop();
  }
  return join(example, "node_modules/mds-sync");
}

const folder = mkdtempSync(join(tmpdir(), "mds-package-"));
const example = join(folder, "example");
let installed: string;
beforeAll(async () => {
  installed = await installExample(folder);
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the packed program", () => {
  it("runs from its tarball in an empty folder, and contains what it needs", () => {
    const run = spawnSync(process.execPath, [join(installed, "dist/cli/main.js"), "--version"], {
      encoding: "utf8",
      cwd: "/",
    });
    expect(run.stderr).toBe("");
    expect(run.stdout).toBe(`${version}\n`);
    expect(readdirSync(installed)).toEqual(
      expect.arrayContaining(["dist", "config", "migrations", "LICENSE", "README.md"]),
    );
    expect(readdirSync(installed)).not.toContain("test");

    // The built ingest thread finds its file and the migrations; the built dashboard finds its pages and the chart library.
    const script = join(installed, "open-a-warehouse.mjs");
    writeFileSync(
      script,
      `import { IngestThread } from "./dist/ingest/thread/ingest-thread.js";
      import { systemClock } from "./dist/runtime/clock.js";
      import { silentLog } from "./dist/runtime/log.js";
      import { createFileRoutes } from "./dist/dashboard/static-files.js";
      const ingest = await IngestThread.start({ path: process.argv[2], clock: systemClock, log: silentLog });
      await ingest.close();
      const pages = new Map(createFileRoutes());
      const scripts = [...pages].filter(([path]) => path.endsWith(".js")).map(([, page]) => page().body.length);
      const hasCharts = pages.has("/bars") && Math.max(...scripts) > 100_000;
      process.stdout.write(hasCharts ? "closed, with charts" : "closed");`,
    );
    const opened = spawnSync(process.execPath, [script, join(installed, "mds.sqlite")], { encoding: "utf8" });
    expect(opened).toMatchObject({ stdout: "closed, with charts", stderr: "", status: 0 });
  });
});

describe("the packed library", () => {
  it("imports without a side effect, and offers its two entries only", () => {
    const script = `import * as library from "mds-sync";
      const handles = process.getActiveResourcesInfo().filter((name) => !/Pipe|TTY|FS/.test(name));
      const inner = await import("mds-sync/dist/cli/main.js").catch(({ code }) => code);
      process.stdout.write(JSON.stringify([Object.keys(library), handles, inner]));`;
    const run = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: example,
      encoding: "utf8",
    });
    expect(run.stderr).toBe("");
    expect(JSON.parse(run.stdout)).toEqual([
      ["Failure", "IncompleteFailure", "Warehouse", "openWarehouse"],
      [],
      "ERR_PACKAGE_PATH_NOT_EXPORTED",
    ]);
  });

  it("has declarations that name no package", () => {
    const seen = new Set<string>();
    const visit = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(
        /(?:from|import\()\s*"([^"]+)"/g,
      )) {
        expect([file, specifier.startsWith(".")]).toEqual([file, true]);
        visit(join(dirname(file), specifier.replace(/\.ts$/, ".d.ts")));
      }
    };
    visit(join(installed, "dist/library/open-warehouse.d.ts"));
    expect(seen.size).toBeGreaterThan(3);
  });

  it("serves the example project, which compiles with --strict and runs", () => {
    // The example's own compiler: it sees what was installed, and nothing of this clone.
    const built = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc"], {
      cwd: example,
      encoding: "utf8",
    });
    expect(built).toMatchObject({ stdout: "", status: 0 });
    const warehouse = createWarehouse(fillTicks);
    const run = spawnSync(process.execPath, ["dist/main.js", warehouse, "BTC"], {
      cwd: example,
      encoding: "utf8",
    });
    expect(run.stderr).toBe("");
    expect(run.stdout).toMatch(
      /^BTC is not complete: from .* to .*: pending\nBTC: 180 ticks, the highest 123456789\.12345679\nBTC: last price 204\.5 at .*\n180 ticks in all\n$/,
    );
  });
});
