import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fillUnit } from "../../../src/cli/commands/init.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { optionEntries } from "../../../src/config/option-table.ts";
import { programFile } from "../../../src/runtime/child-process.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { readProjectFile } from "../../support/repository.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const shipped = (name: string) => readProjectFile(`config/${name}`);

function init(cwd: string, args: string[] = [], env: Record<string, string> = {}) {
  return runInProcess(["init", ...args], { cwd, env });
}

/** The settings of the written file, without environment and flags. */
function settingsOf(file: string) {
  return loadSettings({ env: {}, directory: "/", file }).settings;
}

/** One value for every setting with a flag or a variable; each is tricky to write as YAML. */
const given: Record<string, string> = {
  "service.baseUrl": "https://api.example/market",
  "service.authUrl": "http://[::1]:8080",
  "service.wsUrl": "wss://stream.example",
  "service.clientId": 'a: "b" # c',
  "service.clientSecretFile": "/run/secrets/my secret",
  "service.concurrency": "4",
  "warehouse.path": "/srv/100% data/mds.sqlite",
  "http.host": "::1",
  "http.port": "8080",
  "shared.url": "postgres://mds@db.example:5432/market?sslmode=verify-full",
  "shared.passwordFile": "/run/secrets/shared password",
  "serve.host": "::1",
  "serve.port": "8081",
};

describe("mds-sync init", () => {
  it("writes the shipped settings and a unit for this installation, and prints the next steps", async () => {
    const folder = temporaryFolder();
    const { stdout, stderr, status } = await init(folder);
    expect(status).toBe(0);
    expect(stdout).toBe("");
    expect(readdirSync(folder).sort()).toEqual(["mds-sync.service", "mds-sync.yaml"]);
    expect(readFileSync(join(folder, "mds-sync.yaml"), "utf8")).toBe(shipped("mds-sync.yaml"));
    const unit = readFileSync(join(folder, "mds-sync.service"), "utf8");
    expect(unit).toContain(
      `\nExecStart=${realpathSync(process.execPath)} ${programFile} run --config ${join(folder, "mds-sync.yaml")}\n`,
    );
    expect(unit).toContain("\nWorkingDirectory=/var/lib/mds-sync\n");
    expect(unit).toContain("\nLoadCredential=client-secret:/etc/mds-sync/client-secret\n");
    expect(unit).not.toContain("ReadWritePaths");
    expect(stderr).toContain("1. set service.baseUrl, service.wsUrl, service.clientId in ");
    expect(stderr).toContain("install -D -m 600 /dev/stdin /etc/mds-sync/client-secret");
    expect(stderr).toContain("systemctl enable --now mds-sync");
    expect(stderr.split("\n").length).toBeLessThan(12);
  });

  it("fills in the values of the environment, but never the secret", async () => {
    const folder = temporaryFolder();
    const env = Object.fromEntries(
      optionEntries.flatMap(({ path, option }) => (option.env ? [[option.env, given[path] ?? ""]] : [])),
    );
    // A settings file in the working directory must have no influence.
    writeFileSync(join(folder, "mds-sync.yaml"), "service: { concurrency: 64 }");
    const { stderr, status } = await init(folder, ["--dir", "etc", "--concurrency", "4"], {
      ...env,
      MDS_CLIENT_SECRET: "canary-4e7",
    });
    expect(status).toBe(0);
    expect(stderr).toContain("the secret in MDS_CLIENT_SECRET was not written");
    const settings = settingsOf(join(folder, "etc/mds-sync.yaml"));
    for (const { path, option } of optionEntries) {
      const value = path
        .split(".")
        .reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], settings);
      if (option.env || option.flag) expect(`${path} ${value}`).toBe(`${path} ${given[path]}`);
      else expect([path, value]).toEqual([path, option.defaultValue]);
    }
    const unit = readFileSync(join(folder, "etc/mds-sync.service"), "utf8");
    expect(unit).toContain("\nLoadCredential=client-secret:/run/secrets/my secret\n");
    expect(unit).toContain('\nReadWritePaths="/srv/100%% data"\n');
    for (const name of readdirSync(join(folder, "etc"))) {
      expect(readFileSync(join(folder, "etc", name), "utf8")).not.toContain("canary-4e7");
    }
    expect(stderr).not.toContain("canary-4e7");
  });

  it("overwrites files only with --force", async () => {
    const folder = temporaryFolder();
    const unit = join(folder, "mds-sync.service");
    writeFileSync(unit, "mine");
    expect(await init(folder)).toEqual({
      stdout: "",
      stderr: `mds-sync: ${unit} exists: give another --dir, or --force to replace it\n`,
      status: 2,
    });
    expect(readFileSync(unit, "utf8")).toBe("mine");
    expect(existsSync(join(folder, "mds-sync.yaml"))).toBe(false);
    expect((await init(folder, ["--force"])).status).toBe(0);
    expect(readFileSync(unit, "utf8")).toContain("[Service]");
  });

  it.each([
    [["--http-port", "x"], /^mds-sync: --http-port: http\.port cannot be "x": give a whole number .*\n$/],
    [["--dir", "taken/etc"], /^mds-sync: .*taken\/etc\/mds-sync\.yaml cannot be written \(ENOTDIR\): .*\n$/],
    [
      ["--dir", "/proc/x/etc"],
      /^mds-sync: \/proc\/x\/etc\/mds-sync\.yaml cannot be written \(ENOENT\): .*\n$/,
    ],
    [["--config", "x.yaml"], /^mds-sync: init reads no settings file: leave --config out, give --dir\n$/],
  ])("answers %j in one line with exit 2, and writes nothing", async (args, stderr) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "taken"), "");
    const ended = await init(folder, args);
    expect(ended.stderr).toMatch(stderr);
    expect(ended.status).toBe(2);
    expect(readdirSync(folder)).toEqual(["taken"]);
  });
});

describe("the unit that init writes", () => {
  const installation = {
    node: "/usr/bin/node",
    program: "/opt/mds-sync/dist/cli/main.js",
    settingsFile: "/etc/mds-sync/mds-sync.yaml",
    secretFile: "/etc/mds-sync/client-secret",
    warehouse: "data/mds.sqlite",
  };
  const lineOf = (unit: string, key: string) => unit.split("\n").find((line) => line.startsWith(`${key}=`));

  it("quotes characters that are special to systemd", () => {
    const unit = fillUnit(shipped("mds-sync.service"), {
      ...installation,
      program: '/opt/my "$HOME" 100%/main.js',
    });
    expect(lineOf(unit, "ExecStart")).toBe(
      'ExecStart=/usr/bin/node "/opt/my \\"$$HOME\\" 100%%/main.js" run --config /etc/mds-sync/mds-sync.yaml',
    );
  });

  it("hides home directories, unless the program is in one", () => {
    const template = shipped("mds-sync.service");
    expect(lineOf(fillUnit(template, installation), "ProtectHome")).toBe("ProtectHome=yes");
    const inHome = fillUnit(template, { ...installation, program: "/home/ann/mds-sync/dist/cli/main.js" });
    expect(lineOf(inHome, "ProtectHome")).toBe("ProtectHome=read-only");
  });

  it("lets the service write to the directory of an absolute warehouse path only", () => {
    const unit = fillUnit(shipped("mds-sync.service"), { ...installation, warehouse: "/srv/mds/mds.sqlite" });
    expect(lineOf(unit, "ReadWritePaths")).toBe("ReadWritePaths=/srv/mds");
  });
});
