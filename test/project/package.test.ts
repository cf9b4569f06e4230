import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

const root = resolve(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

interface Lock {
  packages: Record<string, { dev?: boolean; optional?: boolean }>;
}

/** Packs the project and unpacks it like an installation, with links to the dependencies of this clone. */
function installTarball(): string {
  const folder = temporaryFolder();
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz")) ?? "";
  const modules = join(folder, "node_modules");
  mkdirSync(modules);
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", modules]);
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;
  for (const [path, { dev, optional }] of Object.entries(lock.packages)) {
    // Link only what a user's installation has: an undeclared dependency must fail here.
    const [, name, nested] = /^node_modules\/((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(path) ?? [];
    if (dev || optional || !name || nested) continue;
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(root, path), join(modules, name));
  }
  return join(modules, "package");
}

describe("the packed program", () => {
  it("runs from its tarball in an empty folder, and contains what it needs", () => {
    const installed = installTarball();
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
