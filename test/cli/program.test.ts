import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { programEntry } from "../support/build-program.ts";
import { runInChild, runInProcess } from "../support/cli/run-command.ts";
import { readProjectFile } from "../support/repository.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("mds-sync", () => {
  it("prints its version", async () => {
    const { version } = JSON.parse(readProjectFile("package.json"));
    expect(await runInChild(["--version"])).toEqual({ stdout: `${version}\n`, stderr: "", status: 0 });
  });

  it("lists every command in its help, and each has a help of its own", async () => {
    const { stdout, status } = await runInProcess(["--help"]);
    expect(status).toBe(0);
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1]);
    const expected =
      "run init plan backfill status gaps verify bars ticks asof check query export share backup restore serve doctor settings simulate completion".split(
        " ",
      );
    expect(commands).toEqual(expected);
    for (const command of commands) {
      const help = await runInProcess([command ?? "", "--help"]);
      expect(help).toMatchObject({ status: 0, stderr: "" });
      expect(help.stdout).toContain(`Usage: mds-sync ${command}`);
    }
  });

  it("names the remedy in one line if the limit of open files is too low", () => {
    const folder = temporaryFolder();
    const env = {
      PATH: process.env.PATH,
      MDS_BASE_URL: "http://127.0.0.1:9",
      MDS_WS_URL: "ws://127.0.0.1:9",
      MDS_CLIENT_ID: "me",
      MDS_CLIENT_SECRET: "s",
      MDS_HTTP_PORT: "0",
    };
    const shell = 'ulimit -n 26; exec "$0" "$1" run --no-progress --log-level silent';
    const options = { cwd: folder, env, encoding: "utf8" } as const;
    const { stderr, status } = spawnSync("sh", ["-c", shell, process.execPath, programEntry], options);
    expect(stderr).toMatch(/"msg":".*: raise the limit of open files \(LimitNOFILE, ulimit -n\)"\}$/m);
    expect(status).toBe(1);
  });

  it("reports in one line that Node is too old, and exits 2 before anything else loads", () => {
    // Runs the entry file alone with a faked version: loading program.ts would fail.
    const folder = temporaryFolder();
    const source = readFileSync(programEntry, "utf8");
    const file = join(folder, "main.mjs");
    writeFileSync(
      file,
      `Object.defineProperty(process, "versions", { value: { node: "20.20.2" } });\n${source.replace(/^#!.*/, "")}`,
    );
    const { stderr, status } = spawnSync(process.execPath, [file], { encoding: "utf8" });
    expect(stderr).toBe(
      "mds-sync: Node 20.20.2 is too old: use Node 22.12 or newer (inside a clone, ./mds-sync uses its own Node)\n",
    );
    expect(status).toBe(2);
  });
});

describe("mds-sync settings", () => {
  it("lists every setting with its value and origin", async () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, "mds-sync.yaml"),
      "sync: { intraday: { GWA: [BTC, ETH] }, derivatives: false }",
    );
    const { stdout, stderr, status } = await runInProcess(["settings", "--concurrency", "4"], {
      cwd: folder,
      env: { MDS_HTTP_PORT: "0" },
    });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^service\.concurrency +4 +--concurrency$/m);
    expect(stdout).toMatch(/^http\.port +0 +MDS_HTTP_PORT$/m);
    expect(stdout).toMatch(/^sync\.intraday\.GWA +\[BTC, ETH\] +\S+mds-sync\.yaml$/m);
    expect(stdout).toMatch(/^sync\.derivatives +false +\S+mds-sync\.yaml$/m);
    expect(stdout).toMatch(/^sync\.marketCap\.every +5m +default$/m);
    expect(stderr).toMatch(/^read from .*mds-sync\.yaml\n$/);
  });

  it("prints JSON with --json, without the secret", async () => {
    const { stdout } = await runInProcess(["settings", "--json"], {
      env: { MDS_CLIENT_SECRET: "canary-9d2" },
    });
    expect(JSON.parse(stdout)).toMatchObject({
      settings: { http: { port: 9464 } },
      secret: "environment",
      file: null,
    });
    expect(stdout).not.toContain("canary-9d2");
  });

  it("exits 2 with one line for a wrong setting", async () => {
    expect(await runInProcess(["settings"], { env: { MDS_HTTP_PORT: "x" } })).toEqual({
      stdout: "",
      stderr: 'mds-sync: MDS_HTTP_PORT: http.port cannot be "x": give a whole number from 0 to 65535\n',
      status: 2,
    });
  });
});
