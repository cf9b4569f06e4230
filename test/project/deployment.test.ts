import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { fillUnit } from "../../src/cli/commands/init.ts";
import { optionEntries } from "../../src/config/option-table.ts";
import { parseServerAddress } from "../../src/share/server/server-address.ts";
import { hasTool } from "../support/has-tool.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");

const MAX_EXPOSURE = 2;

const settingVariables = new Set([
  ...optionEntries.flatMap(({ option }) => option.env ?? []),
  "MDS_CONFIG",
  "MDS_CLIENT_SECRET",
]);

describe("the systemd unit", () => {
  const unit = read("config/mds-sync.service");
  const installed = fillUnit(unit, {
    node: process.execPath,
    program: join(root, "src/cli/main.ts"),
    settingsFile: "/etc/mds-sync/mds-sync.yaml",
    secretFile: "/etc/mds-sync/client-secret",
    warehouse: "data/mds.sqlite",
  });

  it.each([
    "Type=notify",
    "NotifyAccess=all",
    "Restart=always",
    "RestartPreventExitStatus=2 3",
    "LoadCredential=client-secret:/etc/mds-sync/client-secret",
    "Environment=MDS_CLIENT_SECRET_FILE=%d/client-secret",
    "StateDirectory=mds-sync",
    "ProtectSystem=strict",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "SystemCallFilter=@system-service",
  ])("has the line %s, as shipped and as written by init", (line) => {
    expect(unit.split("\n")).toContain(line);
    expect(installed.split("\n")).toContain(line);
  });

  it("G8: stops a crash loop, but only after two hours", () => {
    const seconds = (key: string) => Number(new RegExp(`^${key}=(\\d+)$`, "m").exec(unit)?.[1]);
    const starts = seconds("StartLimitBurst");
    expect(starts * seconds("RestartSec")).toBeGreaterThanOrEqual(7200);
    // Even if each start lives for ten seconds.
    expect(starts * (seconds("RestartSec") + 10)).toBeLessThan(seconds("StartLimitIntervalSec"));
  });

  it("allows the JIT compiler of Node", () => {
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute/m);
  });

  it(`is valid for systemd, with an exposure level of at most ${MAX_EXPOSURE}`, () => {
    if (!hasTool("systemd-analyze", "the unit's exposure")) return;
    const file = join(temporaryFolder(), "mds-sync.service");
    writeFileSync(file, installed);
    const verified = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
    // systemd also reports problems of other units on the machine: ignore those.
    expect(verified.stderr.split("\n").filter((line) => line.includes("mds-sync"))).toEqual([]);
    const measured = spawnSync("systemd-analyze", ["security", "--offline=true", "--no-pager", file], {
      encoding: "utf8",
    });
    const exposure = Number(/exposure level for .*: ([\d.]+)/.exec(measured.stdout)?.[1]);
    expect(exposure, measured.stderr).toBeLessThanOrEqual(MAX_EXPOSURE);
  });
});

describe("the container image", () => {
  const dockerfile = read("Dockerfile")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll("\\\n", " ");
  const instructions = dockerfile
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, name = "", rest = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
      return { name, rest };
    });
  const of = (name: string) => instructions.filter((each) => each.name === name).map(({ rest }) => rest);
  const lastStage = instructions.slice(instructions.findLastIndex(({ name }) => name === "FROM"));

  it("runs as an unprivileged user with a numeric id, which platforms can check", () => {
    expect(of("USER")).toEqual([expect.stringMatching(/^[1-9]\d{3,}:0$/)]);
    expect(lastStage.some(({ name }) => name === "USER")).toBe(true);
  });

  it("has no build tools in the last stage, and runs no install script of a dependency", () => {
    expect(of("FROM")).toHaveLength(3);
    expect(of("RUN").filter((command) => command.includes("npm ci"))).toEqual([
      "npm ci --ignore-scripts",
      "npm ci --omit=dev --ignore-scripts",
    ]);
    expect(lastStage.filter(({ rest }) => rest.includes("npm"))).toEqual([]);
  });

  it("copies only files that exist and that .dockerignore allows", () => {
    const copied = of("COPY")
      .filter((rest) => !rest.startsWith("--from"))
      .flatMap((rest) => rest.split(/\s+/).slice(0, -1));
    expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    const allowed = read(".dockerignore").match(/(?<=^!).+$/gm);
    expect([...new Set(copied)].sort()).toEqual([...(allowed ?? [])].sort());
  });

  it("contains everything that the package needs to run", () => {
    const { files } = JSON.parse(read("package.json")) as { files: string[] };
    const inImage = lastStage.filter(({ name }) => name === "COPY").map(({ rest }) => rest);
    const isRead = (name: string) =>
      ["docs", "examples", "clients/python"].includes(name) || name.endsWith(".md") || name.startsWith("!");
    for (const folder of files.filter((name) => !isRead(name)))
      expect([folder, inImage.some((rest) => rest.endsWith(` ${folder}`))]).toEqual([folder, true]);
  });

  it("writes only to a volume, so that the root file system may be read-only", () => {
    expect(of("VOLUME")).toEqual(["/data"]);
    expect(of("ENV").join()).toContain("MDS_WAREHOUSE=/data/");
  });

  it("has the same memory settings as the unit", () => {
    const memory = (text: string) => text.match(/\b(MALLOC_\w+|NODE_OPTIONS)=\S+/g)?.sort();
    expect(memory(of("ENV").join(" "))).toHaveLength(4);
    expect(memory(of("ENV").join(" "))).toEqual(memory(read("config/mds-sync.service")));
  });

  it("has a health check that passes only while /healthz answers 200", async () => {
    const [command = ""] = of("HEALTHCHECK");
    const [node, ...args] = JSON.parse(command.slice(command.indexOf("["))) as string[];
    expect(node).toBe("node");
    const statuses = { "/healthz": 200 };
    const server = createServer((request, response) => {
      response.writeHead(statuses[request.url as "/healthz"] ?? 404).end();
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const port = String((server.address() as AddressInfo).port);
    const check = async (MDS_HTTP_PORT: string) =>
      (await once(spawn(process.execPath, args, { env: { MDS_HTTP_PORT } }), "exit"))[0];
    expect(await check(port)).toBe(0);
    statuses["/healthz"] = 503;
    expect(await check(port)).toBe(1);
    expect(await check("1")).toBe(1);
  });

  it("sets only variables that are settings", () => {
    const set = [...dockerfile.matchAll(/\b(MDS_\w+)=/g)].map(([, name = ""]) => name);
    expect(set.filter((name) => !settingVariables.has(name))).toEqual([]);
  });
});

describe("the compose example", () => {
  const compose = parse(read("config/compose.yaml"));
  const service = compose.services["mds-sync"];

  it("runs with a read-only root, no capabilities, and its port on loopback only", () => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      ports: ["127.0.0.1:9464:9464"],
    });
  });

  it("reads the secret from a file, and sets only variables that are settings", () => {
    expect(service.secrets).toEqual(Object.keys(compose.secrets));
    expect(service.environment.MDS_CLIENT_SECRET_FILE).toBe(`/run/secrets/${service.secrets[0]}`);
    expect(Object.keys(service.environment).filter((name) => !settingVariables.has(name))).toEqual([]);
    expect(service.environment).not.toHaveProperty("MDS_CLIENT_SECRET");
  });
});

describe("the compose example of a pair", () => {
  const compose = parse(read("config/compose-shared.yaml"), { merge: true });
  const { north, south, primary, standby } = compose.services;

  it("uses only keys that compose knows, and only what it declares", () => {
    const known =
      "image restart stop_grace_period depends_on environment secrets read_only tmpfs cap_drop security_opt hostname volumes ports configs user entrypoint command healthcheck";
    const declared = ["services", "configs", "secrets", "volumes"];
    expect(Object.keys(compose).filter((key) => !/^(name|x-.*)$/.test(key))).toEqual(declared);
    for (const service of Object.values<Record<string, unknown>>(compose.services)) {
      expect(Object.keys(service).filter((key) => !known.split(" ").includes(key))).toEqual([]);
      const { secrets = [], depends_on = [], volumes = [] } = service as Record<string, string[]>;
      expect(Object.keys(compose.secrets)).toEqual(expect.arrayContaining(secrets));
      expect(Object.keys(compose.services)).toEqual(expect.arrayContaining(depends_on));
      const named = volumes.map((volume) => volume.split(":")[0]).filter((name) => !name?.startsWith("."));
      expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(named));
    }
    expect(Object.keys(compose.configs)).toEqual(
      primary.configs.map(({ source }: { source: string }) => source),
    );
  });

  it("runs two hardened daemons with a name and a volume each, against one database", () => {
    for (const daemon of [north, south]) {
      expect(daemon).toMatchObject({
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
      expect(daemon.ports[0]).toMatch(/^127\.0\.0\.1:/);
      const set = Object.keys(daemon.environment);
      expect(set.filter((name) => !settingVariables.has(name))).toEqual([]);
      expect(daemon.environment.MDS_SHARED_PASSWORD_FILE).toBe("/run/secrets/postgres-secret");
    }
    expect([north.hostname, south.hostname]).toEqual(["north", "south"]);
    expect(north.volumes[0]).not.toBe(south.volumes[0]);
    const url = /:-(.*)\}$/.exec(north.environment.MDS_SHARED_URL)?.[1] ?? "";
    const { POSTGRES_USER, POSTGRES_DB } = primary.environment;
    const { servers, database, user } = parseServerAddress(url);
    expect(servers.map(({ host }) => host)).toEqual(["primary", "standby"]);
    expect({ user, database }).toEqual({ user: POSTGRES_USER, database: POSTGRES_DB });
    for (const { healthcheck } of [primary, standby])
      expect(healthcheck.test).toEqual(["CMD", "pg_isready", "-U", POSTGRES_USER, "-d", POSTGRES_DB]);
  });

  it("mounts the settings file that MDS_CONFIG names, and runs the image's own command", () => {
    for (const { environment, volumes, command, entrypoint } of [north, south]) {
      const [file, target] = volumes[1].split(":");
      expect(target).toBe(environment.MDS_CONFIG);
      expect(existsSync(join(root, "config", file))).toBe(true);
      expect([command, entrypoint]).toEqual([undefined, undefined]);
    }
    const [, command = ""] = /^CMD \["(\w+)"\]$/m.exec(read("Dockerfile")) ?? [];
    expect(read("src/cli/commands/run.ts")).toContain(`program.command("${command}")`);
  });

  it("lets each commit wait for the standby", () => {
    const name = /application_name=(\w+)/.exec(standby.command[0])?.[1];
    expect(compose.configs.replication.content).toContain(`synchronous_standby_names = '${name}'`);
    // After its promotion there is none, and the copied setting would let every commit wait.
    expect(standby.command[0]).toMatch(/exec postgres -c synchronous_standby_names=$/m);
  });
});

describe("the shipped files", () => {
  it("contain no secret", () => {
    const files = ["Dockerfile", ...readdirSync(join(root, "config")).map((name) => `config/${name}`)];
    const suspicious = files.flatMap((file) =>
      [
        ...read(file).matchAll(/\b(MDS_CLIENT_SECRET|clientSecret|password|access_token)\b\s*[:=]\s*\S.*/gi),
      ].map(([text]) => `${file}: ${text}`),
    );
    expect(suspicious).toEqual([]);
  });
});
