import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { fillUnit } from "../../src/cli/commands/init.ts";
import { optionEntries } from "../../src/config/option-table.ts";
import { parseServerAddress } from "../../src/share/server/server-address.ts";
import { startSimulator } from "../simulator/simulator.ts";
import { installProgram } from "../support/build-program.ts";
import { hasTool } from "../support/has-tool.ts";
import { compileCacheEnv } from "../support/program-process.ts";
import { readProjectFile as read, readProjectFile, root } from "../support/repository.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

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

  it("G8: stops a crash loop, but only after two hours", () => {
    const seconds = (key: string) => Number(new RegExp(`^${key}=(\\d+)$`, "m").exec(unit)?.[1]);
    const starts = seconds("StartLimitBurst");
    expect(starts * seconds("RestartSec")).toBeGreaterThanOrEqual(7200);
    // Even if each start lives for ten seconds.
    expect(starts * (seconds("RestartSec") + 10)).toBeLessThan(seconds("StartLimitIntervalSec"));
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

  it("sets only variables that are settings, as the compose examples do", () => {
    const set = [...dockerfile.matchAll(/\b(MDS_\w+)=/g)].map(([, name = ""]) => name);
    const composed = ["config/compose.yaml", "config/compose-shared.yaml"].flatMap((file) =>
      Object.values<{ environment?: object }>(parse(read(file), { merge: true }).services).flatMap(
        (service) => Object.keys(service.environment ?? {}).filter((name) => name.startsWith("MDS_")),
      ),
    );
    expect(composed.length).toBeGreaterThan(5);
    expect([...set, ...composed].filter((name) => !settingVariables.has(name))).toEqual([]);
  });
});

describe("the compose example of a pair", () => {
  const { services, configs } = parse(read("config/compose-shared.yaml"), { merge: true });
  const { north, primary, standby } = services;

  it("has daemons that find both servers, and commits that wait for the standby", () => {
    const url = /:-(.*)\}$/.exec(north.environment.MDS_SHARED_URL)?.[1] ?? "";
    const { POSTGRES_USER, POSTGRES_DB } = primary.environment;
    const { servers, database, user } = parseServerAddress(url);
    expect(servers.map(({ host }) => host)).toEqual(["primary", "standby"]);
    expect({ user, database }).toEqual({ user: POSTGRES_USER, database: POSTGRES_DB });
    const name = /application_name=(\w+)/.exec(standby.command[0])?.[1];
    expect(configs.replication.content).toContain(`synchronous_standby_names = '${name}'`);
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

const cronFile = readProjectFile("config/mds-sync.cron");
const logrotateFile = join(root, "config/mds-sync.logrotate");
const lines = cronFile.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
const jobs = lines.filter((line) => !/^\w+=/.test(line));
const variables = Object.fromEntries(
  lines.flatMap((line) => [/^(\w+)=(.*)$/.exec(line)?.slice(1) ?? []]).filter((pair) => pair.length === 2),
) as Record<string, string>;

/** What cron passes to the shell: the sixth field and what follows, `\%` as `%`. */
function commandOf(name: string): string {
  const job = jobs.find((line) => line.includes(`mds-sync ${name} `)) ?? "";
  expect(job).toMatch(/^(?:[\d*/,-]+ ){5}mds-sync \S/);
  const command = job.replace(/^(?:\S+ ){6}/, "");
  // An unescaped percent sign ends the command.
  expect(command).not.toMatch(/(?<!\\)%/);
  return command.replaceAll("\\%", "%");
}

async function setUp() {
  const listed = new Date(Date.now() - 90 * 86_400_000).toISOString().slice(0, 10);
  const simulator = await startSimulator({ quirks: { listed: { perMille: 1000, on: listed } } });
  onTestFinished(() => simulator.stop());
  const folder = temporaryFolder();
  const inFolder = (path: string) => path.replaceAll(/\/(?=var\/|etc\/)/g, `${folder}/`);
  for (const path of ["/etc/mds-sync", "/var/lib/mds-sync/data", "/var/backups/mds-sync"])
    mkdirSync(join(folder, path), { recursive: true });
  const path = installProgram(folder, variables.PATH);
  writeFileSync(join(folder, "etc/mds-sync/client-secret"), simulator.clientSecret, { mode: 0o600 });
  const select = (symbols: string) =>
    writeFileSync(
      join(folder, "etc/mds-sync/mds-sync.yaml"),
      `service: { baseUrl: "${simulator.baseUrl}", wsUrl: "${simulator.wsUrl}", clientId: ${simulator.clientId} }
sync: { ohlcv: { GWA: ${symbols}, MWA: none, LX: none }, intraday: false, exchangeTickers: false, marketCap: false, derivatives: false }
`,
    );
  select("[BTC]");
  const moved = Object.entries(variables).map(([name, value]) => [name, inFolder(value)]);
  const env = { ...Object.fromEntries(moved), PATH: path };
  /** Runs a job as cron does; what it prints would be sent as a mail. */
  const run = async (name: string) => {
    const child = spawn(variables.SHELL ?? "", ["-c", inFolder(commandOf(name))], {
      env: { ...env, ...compileCacheEnv() },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return stdout + stderr;
  };
  const list = (path: string) => readdirSync(join(folder, path)).toSorted();
  return { run, list, select, folder };
}

describe("the cron example", () => {
  it("sets only variables that are settings, its shell, its path and the folder of the backups", () => {
    const settings = new Set(optionEntries.flatMap(({ option }) => option.env ?? []));
    const others = Object.keys(variables).filter((name) => name !== "MDS_CONFIG" && !settings.has(name));
    expect(others).toEqual(["SHELL", "PATH", "BACKUPS"]);
    expect(jobs).toHaveLength(2);
  });

  it("sends no mail for a good night, keeps seven backups, and reports a bad night with the exit code", async () => {
    const { run, list, select, folder } = await setUp();
    expect(await run("backfill")).toBe("");
    expect(list("var/lib/mds-sync")).toEqual(["backfill.log", "data"]);
    expect(readFileSync(join(folder, "var/lib/mds-sync/backfill.log"), "utf8")).not.toBe("");

    const backups = join(folder, "var/backups/mds-sync");
    const earlier = Array.from({ length: 8 }, (_, day) => `mds-2020-01-0${day + 1}.sqlite`);
    for (const name of [...earlier, "notes.txt"]) writeFileSync(join(backups, name), "");
    expect(await run("backup")).toBe("");
    expect(list("var/backups/mds-sync")).toEqual([
      ...earlier.slice(2),
      expect.stringMatching(/^mds-(?!2020)\d{4}-\d\d-\d\d\.sqlite$/),
      "notes.txt",
    ]);

    select("[BTC, NOPE]");
    const mail = await run("backfill");
    expect(mail).toMatch(/^stream +new rows/m);
    expect(mail).toMatch(/^- ohlcv.*NOPE/m);
    expect(mail).toMatch(/^mds-sync backfill: exit 4, see \S+\/var\/lib\/mds-sync\/backfill\.log$/m);

    // A backup that fails deletes nothing.
    writeFileSync(join(folder, "bin/mds-sync"), "#!/bin/sh\nexit 75\n");
    expect(await run("backup")).toMatch(/^mds-sync backup: exit 75, see \S+\/backup\.log\n$/);
    expect(list("var/backups/mds-sync")).toHaveLength(8);
  });

  it.runIf(hasTool("logrotate", "config/mds-sync.logrotate"))("has its logs rotated", () => {
    const logs = [...cronFile.matchAll(/2>>(\S+)/g)].map(([, log]) => log);
    expect(logs).toEqual(["backfill.log", "backup.log"]);
    expect(readFileSync(logrotateFile, "utf8")).toMatch(/^\/var\/lib\/mds-sync\/\*\.log \{$/m);
    const folder = temporaryFolder();
    writeFileSync(join(folder, "backfill.log"), "{}\n");
    const { username } = userInfo();
    const group = execFileSync("id", ["-gn"], { encoding: "utf8" }).trim();
    const config = readFileSync(logrotateFile, "utf8")
      .replaceAll("/var/lib/mds-sync", folder)
      .replaceAll("mds-sync mds-sync", `${username} ${group}`);
    writeFileSync(join(folder, "config"), config, { mode: 0o644 });
    execFileSync("logrotate", ["--force", "--state", join(folder, "state"), join(folder, "config")]);
    expect(readdirSync(folder).toSorted()).toEqual(["backfill.log", "backfill.log.1.gz", "config", "state"]);
  });
});
