import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { USER_TIME_FORMS } from "../../src/model/time.ts";
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

const times =
  "YYYY-MM-DD, a time such as '2026-03-01 12:00' (UTC) or 2026-03-01T07:00:00.5-05:00, now, or a relative time such as -7d or -90m";

/** What is wrong with a command line, and what to do: found before a warehouse or a service is needed. */
const answers: readonly (readonly [args: string | readonly string[], line: string])[] = [
  [[], "no command given: see mds-sync --help"],
  ["setings", "unknown command 'setings': did you mean settings?"],
  ["settings --confg x", "unknown option '--confg': did you mean --config?"],
  ["settings --config", "option '--config <file>' argument missing: see mds-sync --help"],
  [
    "settings extra",
    "too many arguments for 'settings'. Expected 0 arguments but got 1: extra: see mds-sync --help",
  ],
  ["simulate --port x", "--port cannot be x: give a whole number from 0 to 65535"],
  ["simulate --size huge", "--size cannot be huge: give demo or real"],
  ["backfill --stream ohlvc", "--stream cannot be ohlvc: did you mean ohlcv?"],
  ["backfill --from yesterday", `--from cannot be yesterday: give ${times}`],
  ["backfill --log-level loud", "--log-level cannot be loud: give one of debug, info, warn, error, silent"],
  ["gaps --stream intrady", "--stream cannot be intrady: did you mean intraday?"],
  ["gaps --stream ohlc", "--stream cannot be ohlc: did you mean ohlcv?"],
  ["gaps --from yesterday", `--from cannot be yesterday: give ${USER_TIME_FORMS}`],
  ["gaps --to 2026-03-01T25:00:00", `--to cannot be 2026-03-01T25:00:00: give ${USER_TIME_FORMS}`],
  [
    "gaps --from 2026-03-02 --to 2026-03-02",
    "--from 2026-03-02 is not before --to 2026-03-02: a range is [from, to)",
  ],
  ["verify --repair", "--repair needs --ledger: without it verify always repairs"],
  ["verify --ledger --all", "option '--ledger' cannot be used with option '--all': see mds-sync --help"],
  ["bars BTC", "required option '--every <length>' not specified: see mds-sync --help"],
  ["bars BTC --every 7x", "a bar cannot be 7x long: give a length such as 30s, 10m, 1h, 1d or 1w"],
  ["bars BTC --every 1h --columns clos", "--columns cannot be clos: did you mean close?"],
  ["bars BTC --every 1h --source x", "--source cannot be x: give ticks or ohlcv"],
  ["bars BTC --every 1h --format parquet", "--format parquet needs a file: name it with --out FILE"],
  ["ticks BTC --format xml", "--format cannot be xml: give table, csv, json, ndjson or parquet"],
  [
    "ticks BTC --tz Berlin",
    "there is no time zone Berlin: give a name such as Europe/Berlin or America/New_York",
  ],
  ["asof now BTC --fromat csv", "unknown option '--fromat': see mds-sync asof --help"],
  ["query --schema bars_1hr", "there is no relation bars_1hr: did you mean bars_1h?"],
  ["query --param a=1", "--param needs SQL: leave out --param, or give SQL"],
  ["query SQL --schema gaps", "--schema cannot be combined with SQL: leave out one of them"],
  ["query SQL --format xml", "--format cannot be xml: give table, csv, json or ndjson"],
  ["query SQL --json --format csv", "--json and --format csv contradict each other: leave out one of them"],
  ["query SQL --param a", "--param cannot be a: give NAME=VALUE"],
  ["query SQL --param a=@soon", `--param cannot be a=@soon: after @ give ${USER_TIME_FORMS}`],
];

describe("a wrong command line", () => {
  it.each(answers)("%j is answered in one line with exit 2", async (args, line) => {
    const env = { MDS_WAREHOUSE: join(temporaryFolder(), "none.sqlite") };
    const ended = await runInProcess(typeof args === "string" ? args.split(" ") : args, { env });
    expect(ended).toEqual({ stdout: "", stderr: `mds-sync: ${line}\n`, status: 2 });
  });
});
