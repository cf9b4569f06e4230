import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { optionEntries } from "../../src/config/option-table.ts";
import { startSimulator } from "../simulator/simulator.ts";
import { installProgram } from "../support/build-program.ts";
import { hasTool } from "../support/has-tool.ts";
import { compileCacheEnv } from "../support/program-process.ts";
import { readProjectFile, root } from "../support/repository.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

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
