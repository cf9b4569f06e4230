import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { exportWarehouse } from "../../src/export/export-warehouse.ts";
import { CATALOGUE } from "../../src/export/manifest.ts";
import { runReadQuery } from "../../src/warehouse/query/query.ts";
import { withReader } from "../../src/warehouse/reader.ts";
import { openCatalogue, queryDuckDb } from "../docs/cookbook/engines.ts";
import { parseQuestions, readCookbook } from "../docs/cookbook/page.ts";
import { fillDemoWarehouse } from "../docs/demo-warehouse.ts";
import { findBrokenLinks } from "../docs/page-links.ts";
import { startLocalRegistry } from "../support/cli/local-registry.ts";
import { UNUSED_PORT } from "../support/free-port.ts";
import { hasModules, python } from "../support/has-tool.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { timeLimit } from "../support/time-limit.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");
const builtPages = join(root, "src/dashboard/bundle");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const listFiles = (path: string) => readdirSync(path, { recursive: true, encoding: "utf8" }).sort();

/** Debian's Python, which has Debian's pandas. */
const hasPandas = hasModules("pandas", "the example in Python");

const folder = mkdtempSync(join(tmpdir(), "mds-package-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const clone = join(folder, "clone");
const example = join(folder, "example");
const prefix = join(folder, "global");
/** Nothing of the machine's npm: an empty cache, and no registry but the test's own. */
const npmEnv = {
  PATH: process.env.PATH ?? "",
  HOME: folder,
  npm_config_cache: join(folder, "cache"),
  npm_config_registry: `http://127.0.0.1:${UNUSED_PORT}/`,
};
const installed = join(example, "node_modules/mds-sync");
/** What the release script says about the tarball. */
let contents = "";
/** What npm said while it installed the tarball for everybody. */
let globalInstall: { readonly stderr: string };

/** Runs the build stage of the Dockerfile: its command, on the files that it copies. The packages are those of this clone. */
async function buildImage(): Promise<void> {
  const [stage = ""] = readFileSync(join(root, "Dockerfile"), "utf8")
    .split(/^FROM /m)
    .slice(1);
  const copied = [...stage.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, files = ""]) => files.split(" "));
  for (const file of copied) copy(file);
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
  const command = [...stage.matchAll(/^RUN (.+)$/gm)].at(-1)?.[1] ?? "";
  await run("sh", ["-c", command], { cwd: clone, env: npmEnv });
}

/** Adds the other files: what `git clone` and `npm ci` make, with what `postprepare` built; and what `pip install` leaves. */
function completeClone(): void {
  const isOutput = /^(?:data|reports|\.git|\.stryker-tmp|\.bench-.*)$/;
  for (const file of readdirSync(root))
    if (!isOutput.test(file) && !existsSync(join(clone, file))) copy(file);
  mkdirSync(join(clone, "clients/python/build/lib/mds"), { recursive: true });
  copyFileSync(
    join(root, "clients/python/mds/__init__.py"),
    join(clone, "clients/python/build/lib/mds/__init__.py"),
  );
}

function copy(file: string): void {
  cpSync(join(root, file), join(clone, file), { recursive: true, filter: (path) => path !== builtPages });
}

/** Installs the tarball twice: in the example project, and for everybody. */
async function installPackage(): Promise<void> {
  const { stdout } = await run(process.execPath, ["scripts/release.ts", "--pack-only"], {
    cwd: clone,
    env: npmEnv,
  });
  contents = stdout;
  const tarball = /^\/.*\.tgz$/m.exec(stdout)?.[0] ?? "";
  cpSync(join(root, "examples/typescript"), example, { recursive: true });
  const registry = await startLocalRegistry(root, tarball);
  try {
    // Without the binaries of DuckDB, 100 MB that the tests do not use.
    const args = ["install", "--omit=optional", "--no-audit", "--no-fund", `--registry=${registry.url}`];
    [globalInstall] = await Promise.all([
      run("npm", [...args, "--global", `--prefix=${prefix}`, tarball], { cwd: folder, env: npmEnv }),
      // Without scripts, as a container installs.
      run("npm", [...args, "--ignore-scripts"], { cwd: example, env: npmEnv }),
    ]);
  } finally {
    await registry.stop();
  }
}

beforeAll(async () => {
  await buildImage();
  completeClone();
  await installPackage();
}, timeLimit(300_000));

describe("the build", () => {
  it("works on the files that the Dockerfile copies", () => {
    const version = spawnSync(process.execPath, [join(clone, "dist/cli/main.js"), "--version"], {
      encoding: "utf8",
    });
    expect(version).toMatchObject({ stdout: `${manifest.version}\n`, status: 0 });
    expect(existsSync(join(clone, "dist/types/library/open-warehouse.d.ts"))).toBe(true);
  });
});

describe("the demo in a clone", () => {
  it(
    "runs the lines that it prints, at once, beside itself",
    async () => {
      const demo = spawn("npm", ["start"], {
        cwd: clone,
        env: { ...npmEnv, MDS_HTTP_PORT: "0" },
        detached: true,
      });
      let screen = "";
      for (const stream of [demo.stdout, demo.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => {
          screen += text;
        });
      const stop = async () => {
        const hasEnded = demo.exitCode !== null || demo.signalCode !== null;
        if (hasEnded || demo.pid === undefined) return;
        process.kill(-demo.pid, "SIGINT");
        await once(demo, "close");
      };
      onTestFinished(stop);
      await vi.waitFor(() => expect(screen).toMatch(/try, in another terminal:\n(?: {2}.+\n)+\n/), {
        timeout: timeLimit(120_000),
        interval: 50,
      });
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(screen)?.[0] ?? "";
      const files = listFiles(join(clone, "dist"));
      rmSync(join(folder, "cache"), { recursive: true });

      const lines = screen.match(/(?<=^ {2})(?:export |\.\/mds-sync ).+$/gm) ?? [];
      expect(lines).toHaveLength(4);
      const pasted = await run("sh", ["-e", "-c", lines.join("\n")], { cwd: clone, env: npmEnv });
      expect(pasted.stdout).toMatch(/BTC/);
      // The bars of the last line are over.
      const bars = pasted.stdout.slice(pasted.stdout.lastIndexOf("time ")).match(/\d{4}-\S+Z/g) ?? [];
      expect(bars.length).toBeGreaterThan(3);
      expect(Math.max(...bars.map((start) => Date.parse(start))) + 3_600_000).toBeLessThan(Date.now());
      // npm would leave something in its cache: none of the lines waits for it.
      expect(existsSync(join(folder, "cache"))).toBe(false);

      // Who writes npx all the same breaks nothing either.
      const npx = await run("npx", ["mds-sync", "--version"], { cwd: clone, env: npmEnv });
      expect(npx.stdout).toBe(`${manifest.version}\n`);
      expect(listFiles(join(clone, "dist"))).toEqual(files);
      expect((await fetch(`${address}/api/status`)).status).toBe(200);

      // Every question of the cookbook has an answer, but for those that ask what is missing or corrected: nothing is.
      const unanswered = withReader(join(clone, "data/demo.sqlite"), (reader) =>
        parseQuestions(readCookbook()).filter(
          ({ sqlite }) => [...runReadQuery(reader, sqlite).rows].length === 0,
        ),
      );
      expect(unanswered.map(({ title }) => title.replace(/\..*/, ""))).toEqual(["4", "5", "8"]);
      await stop();
      expect(screen).not.toMatch(/Cannot find module/);
    },
    timeLimit(300_000),
  );
});

describe("the global installation", () => {
  it("has the program, and asks for no install script", () => {
    const bin = spawnSync(process.execPath, [join(prefix, "bin/mds-sync"), "--version"], {
      encoding: "utf8",
    });
    expect(bin).toMatchObject({ stdout: `${manifest.version}\n`, stderr: "", status: 0 });
    expect(globalInstall.stderr).not.toMatch(/script/);
  });
});

describe("the packed program", () => {
  it("contains what it needs, and syncs", () => {
    for (const part of ["dist/", "docs/", "examples/", "clients/", "SECURITY.md"])
      expect(contents).toMatch(new RegExp(`KiB {2}${part}`));
    expect(readdirSync(installed)).toEqual(
      expect.arrayContaining(["dist", "config", "LICENSE", "README.md"]),
    );
    expect(readdirSync(installed)).not.toContain("test");
    expect(listFiles(join(installed, "dist"))).toEqual(listFiles(join(clone, "dist")));

    // The program finds its threads and the migrations without any package that only the build has.
    const main = [process.execPath, join(installed, "dist/cli/main.js")];
    const backfill = [...main, "backfill", "--stream", "market_caps", "--warehouse", "packed.sqlite"];
    const args = ["simulate", "--port", "0", "--", ...backfill];
    const synced = spawnSync(main[0] ?? "", [main[1] ?? "", ...args], { cwd: folder, encoding: "utf8" });
    expect(synced, synced.stderr).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/market_caps +\d/),
    });
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
      ["Failure", "IncompleteFailure", "Warehouse", "openWarehouse", "toArrow"],
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
    visit(join(installed, "dist/types/library/open-warehouse.d.ts"));
    expect(seen.size).toBeGreaterThan(3);
  });

  it("serves the example project, which compiles with --strict", () => {
    // The example's own compiler: it sees what was installed, and nothing of this clone.
    // The compiler is an optional package of its platform, like the binaries of DuckDB.
    const built = spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc")], {
      cwd: example,
      encoding: "utf8",
    });
    expect(built).toMatchObject({ stdout: "", status: 0 });
  });

  it("has examples in SQL, TypeScript and Python, which print the same", async () => {
    const { path } = await fillDemoWarehouse(folder);
    const sql = readFileSync(join(installed, "examples/sql/report.sql"), "utf8");
    const main = join(installed, "dist/cli/main.js");
    const [name, day] = ["ETH", "2026-02-28"];
    const expected = "1,90,0.002646,2700,2222.47047,2144.02466,2026-03-01T13:00:00.000000Z";
    const printed = (command: string, args: readonly string[], options: object) => {
      const { stdout, stderr } = spawnSync(command, args, { cwd: example, encoding: "utf8", ...options });
      return { stdout: stdout.replaceAll("\r", ""), stderr: stderr.replace(/^1 row in \d+ ms\n$/, "") };
    };
    const query = [main, "query", "--format", "csv", "--param", `name=${name}`, "--param", `day=${day}`, "-"];
    const header = "name,day,missing_ranges,bars,volatility,ticks,highest,last_price,last_time";
    const answer = { stdout: `${header}\n${name},${day},${expected}\n`, stderr: "" };
    expect(printed(process.execPath, query, { input: sql, env: { MDS_WAREHOUSE: path } })).toEqual(answer);
    expect(printed(process.execPath, ["dist/main.js", path, name, day], {})).toEqual(answer);
    if (!hasPandas) return;
    const env = { PYTHONPATH: join(installed, "clients/python"), PYTHONDONTWRITEBYTECODE: "1" };
    const script = join(installed, "examples/python/report.py");
    expect(printed(python, [script, path, name, day], { env })).toEqual(answer);
  });

  it("has an example for DuckDB", async () => {
    const { path } = await fillDemoWarehouse(folder);
    const to = join(folder, "example-export");
    await exportWarehouse({
      warehouse: path,
      to,
      program: "test",
      clock: new ManualClock("2026-03-01T13:00:07Z"),
    });
    const catalogue = await openCatalogue(join(to, CATALOGUE));
    const sql = readFileSync(join(installed, "examples/sql/correlation.sql"), "utf8");
    const correlations = await queryDuckDb(catalogue.connection, sql);
    catalogue.close();
    expect(correlations.split("\n").slice(2, 5)).toEqual([
      expect.stringMatching(/^BTC +ETH +\d+ +-?0\.\d+$/),
      expect.stringMatching(/^BTC +SOL /),
      expect.stringMatching(/^ETH +SOL /),
    ]);
  });
});

describe("the packed documents", () => {
  it("link only to what is packed", () => {
    const packed = listFiles(installed).filter((file) => !file.startsWith("node_modules/"));
    expect(
      findBrokenLinks(
        installed,
        packed.filter((file) => file.endsWith(".md")),
      ),
    ).toEqual([]);
    expect(packed.filter((file) => /__pycache__|egg-info|python\/build/.test(file))).toEqual([]);
  });
});
