import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { fillUnit } from "../../src/cli/commands/init.ts";
import { optionEntries } from "../../src/config/option-table.ts";
import { parseServerAddress } from "../../src/share/server/server-address.ts";
import { hasTool } from "../support/has-tool.ts";
import { readProjectFile as read, root } from "../support/repository.ts";
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
