import { chmodSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import {
  isSectionSet,
  loadSettings,
  requireServiceSettings,
  type SettingsSources,
} from "../../src/config/load-settings.ts";
import { optionEntries } from "../../src/config/option-table.ts";
import { Failure } from "../../src/model/failure.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function load(yaml: string | undefined, sources: Partial<SettingsSources> = {}) {
  const directory = temporaryFolder();
  if (yaml !== undefined) writeFileSync(join(directory, "mds-sync.yaml"), yaml);
  return loadSettings({ env: {}, directory, ...sources });
}

/** The error line that the operator sees. */
function errorOf(yaml: string | undefined, sources: Partial<SettingsSources> = {}): string {
  try {
    requireServiceSettings(load(yaml, sources));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.exit).toBe(2);
    expect(error.summary).not.toContain("\n");
    return error.summary.replace(/^.*?mds-sync\.yaml/, "FILE");
  }
  throw new Error("the settings were accepted");
}

describe("mistakes", () => {
  it("are named all at once, each with its remedy", () => {
    const yaml =
      "service: { concurency: 3, refreshSeconds: soon }\nhttp: { port: 70000 }\nsync: { ohlcv: 7 }\nwarehouse: { password: x }";
    const error = errorOf(yaml, { env: { MDS_BASE_URL: "https://api.example.com/v3" } });
    expect(error).toContain("(6)");
    expect(error).not.toContain("(7)");
    expect(error).toContain("did you mean service.concurrency?");
    expect(error).toContain('service.refreshSeconds cannot be "soon" (give a whole number from 1 to 3600)');
    expect(error).toContain('http.port cannot be "70000"');
    expect(error).toContain("sync.ohlcv is a single value");
    expect(error).toContain("warehouse.password looks like a secret");
    expect(error).toContain("give the address without /v3: https://api.example.com)");
  });

  it("name what to give in place of a role that earlier versions had", () => {
    expect(errorOf("shared: { role: split }")).toBe(
      'FILE: shared.role cannot be "split": give pair, with which each daemon syncs everything and one of them forwards, or alone; split is gone',
    );
    expect(errorOf("shared: { role: both }")).toBe('FILE: shared.role cannot be "both": give alone or pair');
    expect(load("shared: { role: pair }").settings.shared.role).toBe("pair");
  });

  it("name the version at the end of an address, which the client adds itself", () => {
    for (const path of ["/v3", "/v3/"])
      expect(errorOf(`service: { authUrl: "https://auth.example.com${path}" }`)).toContain(
        "give the address without /v3: https://auth.example.com",
      );
    expect(load("service: { baseUrl: https://example.com/api }").settings.service.baseUrl).toBe(
      "https://example.com/api",
    );
  });
});

describe("where settings come from", () => {
  it("uses the defaults of the contract when there is no file", () => {
    const { settings, file, origins } = load(undefined);
    expect(file).toBeUndefined();
    const limits = { refreshSeconds: 30, concurrency: 8, maxRequestsPerSecond: 0 };
    expect(settings.service).toMatchObject({ ...limits, lxIndexIds: {} });
    expect(settings.warehouse.path).toBe("data/mds.sqlite");
    expect(settings.sync.lookups).toEqual({ every: 3600 });
    const all = { kind: "all" };
    expect(settings.sync.ohlcv).toEqual({ GWA: all, MWA: all, LX: all });
    const ticks = { GWA: { kind: "top", count: 50 }, MWA: { kind: "none" }, LX: all };
    expect(settings.sync.intraday).toEqual({ ...ticks, days: 200 });
    expect(settings.schedule).toEqual({ nightly: "10 0 * * *", export: "", exportTo: "" });
    expect(settings.http).toEqual({ host: "127.0.0.1", port: 9464, allowedHosts: [] });
    expect(settings.retention).toEqual({ exchangeTicks: undefined, derivativeTicks: undefined });
    expect(new Set(origins.values())).toEqual(new Set(["default"]));
  });

  it("lets the environment override the file, and flags override both", () => {
    const yaml = "warehouse: { path: from-file }\nhttp: { port: 1 }\nservice: { concurrency: 3 }";
    const env = { MDS_WAREHOUSE: "from-environment", MDS_HTTP_PORT: "2" };
    const { settings, origins } = load(yaml, { env, flags: { "warehouse.path": "from-flag" } });
    expect(settings.warehouse.path).toBe("from-flag");
    expect(settings.http.port).toBe(2);
    expect(settings.service.concurrency).toBe(3);
    expect(origins.get("warehouse.path")).toBe("--warehouse");
    expect(origins.get("http.port")).toBe("MDS_HTTP_PORT");
    expect(origins.get("service.concurrency")).toMatch(/mds-sync\.yaml$/);
    expect(origins.get("http.host")).toBe("default");
  });

  it("reads the file that --config names, else MDS_CONFIG, else ./mds-sync.yaml", () => {
    const folder = temporaryFolder();
    const other = join(folder, "other.yaml");
    const third = join(folder, "third.yaml");
    writeFileSync(other, "service: { concurrency: 4 }");
    writeFileSync(third, "service: { concurrency: 5 }");
    const local = "service: { concurrency: 6 }";
    expect(load(local).settings.service.concurrency).toBe(6);
    expect(load(local, { env: { MDS_CONFIG: other } }).settings.service.concurrency).toBe(4);
    expect(load(local, { env: { MDS_CONFIG: other }, file: third }).settings.service.concurrency).toBe(5);
  });

  it("stores an address verbatim, since it is also the token's audience", () => {
    const [baseUrl, wsUrl] = ["https://md.example/", "wss://md.example/stream"];
    const env = { MDS_BASE_URL: baseUrl, MDS_WS_URL: wsUrl };
    expect(load(undefined, { env }).settings.service).toMatchObject({ baseUrl, wsUrl });
  });

  it("the example file lists every setting with its default", () => {
    const file = resolve(import.meta.dirname, "../../config/mds-sync.yaml");
    const example = loadSettings({ env: {}, directory: "/", file });
    expect(example.settings).toEqual(load(undefined).settings);
    const isListed = (path: string) => example.origins.get(path) === file;
    const unlisted = optionEntries.map(({ path }) => path).filter((path) => !isListed(path));
    // A file that sets anything of `serve` makes the daemon serve.
    const ofServe = ["host", "port", "clients", "tls.certFile", "tls.keyFile", "behindProxy"];
    expect(unlisted).toEqual([
      ...["baseUrl", "authUrl", "wsUrl", "clientId", "clientSecretFile"].map((key) => `service.${key}`),
      ...ofServe.map((key) => `serve.${key}`),
      "shared.passwordFile",
    ]);
    expect(isSectionSet(example, "serve")).toBe(false);
    expect(isSectionSet(load("serve: { port: 9465 }"), "serve")).toBe(true);
  });
});

describe("selectors", () => {
  it("parses all, none, top and lists, also symbols that YAML would convert", () => {
    const yaml = "sync: { ohlcv: { GWA: [BTC, TRUE, 42, 1e5, NULL], MWA: { top: 7 }, LX: none } }";
    const GWA = { kind: "list", names: ["BTC", "TRUE", "42", "1e5", "NULL"] };
    const others = { MWA: { kind: "top", count: 7 }, LX: { kind: "none" } };
    expect(load(yaml).settings.sync.ohlcv).toEqual({ GWA, ...others });
  });

  it("accepts false for a stream that is not synced", () => {
    const { settings, origins } = load("sync: { derivatives: false }");
    expect(settings.sync.derivatives).toBe(false);
    expect(settings.sync.marketCap).toEqual({ every: 300 });
    expect(origins.get("sync.derivatives")).toMatch(/yaml$/);
  });
});

describe("an invalid setting fails with one line, a remedy and exit code 2", () => {
  it.each([
    [
      "service: { concurency: 8 }",
      "FILE: service.concurency is not a setting: did you mean service.concurrency?",
    ],
    ["servce: { concurrency: 8 }", "FILE: servce is not a setting: did you mean service?"],
    [
      "retention: { indexTicks: 90d }",
      "FILE: retention.indexTicks is gone: remove it: the warehouse keeps all index ticks; an export keeps its own copy, and a month of the shared warehouse can be detached",
    ],
    ["zzzzzzzzzzzzzzzz: 1", "FILE: zzzzzzzzzzzzzzzz is not a setting: mds-sync settings lists all settings"],
    [
      "service: { concurrency: lots }",
      'FILE: service.concurrency cannot be "lots": give a whole number from 1 to 64',
    ],
    [
      "service: { baseUrl: http://example.com }",
      'FILE: service.baseUrl cannot be "http://example.com": give an address such as https://host (http:// only to localhost), without user name or password',
    ],
    [
      "sync: { marketCap: { every: 5 } }",
      'FILE: sync.marketCap.every cannot be "5": give a duration of at least 30s, such as 30s, 5m, 1h or 2d',
    ],
    [
      "sync: { ohlcv: { GWA: some } }",
      'FILE: sync.ohlcv.GWA cannot be "some": give all, none, { top: N }, or a list such as [BTC, ETH]',
    ],
    ["sync: { ohlcv: true }", "FILE: sync.ohlcv is a single value: give a mapping of settings, or false"],
    [
      "retention: { exchangeTicks: 90 }",
      'FILE: retention.exchangeTicks cannot be "90": give forever, or a number of days such as 90d',
    ],
    [
      'schedule: { nightly: "61 0 * * *" }',
      'FILE: schedule.nightly cannot be "61 0 * * *": give five cron fields in UTC such as "10 0 * * *" (minute hour day month weekday), or "" for never',
    ],
    [
      "schedule: { nightly: * 0 }",
      "FILE:1:22 is not YAML (BAD_ALIAS): put a value that begins with * into quotes",
    ],
    ["service: [", "FILE:1:11 is not YAML (BAD_INDENT): fix the YAML there"],
    ["service: &a { concurrency: 1 }\nhttp: *a", "FILE uses YAML aliases: write each value out"],
    ["- a", "FILE is not a mapping of settings: begin with a section such as service:"],
  ])("%s", (yaml, line) => {
    expect(errorOf(yaml)).toEqual(line);
  });

  it("names the invalid variable or flag", () => {
    expect(errorOf(undefined, { env: { MDS_HTTP_PORT: "http" } })).toBe(
      'MDS_HTTP_PORT: http.port cannot be "http": give a whole number from 0 to 65535',
    );
    expect(errorOf(undefined, { flags: { "service.concurrency": "0" } })).toBe(
      '--concurrency: service.concurrency cannot be "0": give a whole number from 1 to 64',
    );
  });

  it("is named in every source, also where another one covers it", () => {
    const covered = { env: { MDS_HTTP_PORT: "9000" }, flags: { "http.port": "9001" } };
    const line = 'http.port cannot be "99999": give a whole number from 0 to 65535';
    expect(errorOf("http: { port: 99999 }", covered)).toBe(`FILE: ${line}`);
    expect(errorOf("http: { port: 1 }", { ...covered, env: { MDS_HTTP_PORT: "99999" } })).toBe(
      `MDS_HTTP_PORT: ${line}`,
    );
  });

  it.each(["300.1.1.1", "127.1", "1.2.3", "[::1]", "::g", "a b", "-a.example", "http://localhost", "a..b"])(
    "a host that cannot be one: %s",
    (host) => {
      for (const section of ["http", "serve"])
        expect(errorOf(`${section}: { host: "${host}" }`)).toBe(
          `FILE: ${section}.host cannot be "${host}": give an address such as 127.0.0.1 or ::1, or a host name`,
        );
      if (!/[ /]/.test(host) && host !== "[::1]")
        expect(errorOf(`shared: { url: "postgres://user@${host}:5432/db" }`)).toContain(
          "shared.url cannot be",
        );
    },
  );

  it.each(["0.0.0.0", "::", "::1", "fe80::1%eth0", "localhost", "db-1.example.com", "my_host"])(
    "a host that may be one: %s",
    (host) => {
      expect(load(`http: { host: "${host}" }`).settings.http.host).toBe(host);
    },
  );

  it("reports that the named file does not exist or is a folder", () => {
    const folder = temporaryFolder();
    expect(errorOf(undefined, { file: join(folder, "absent.yaml") })).toMatch(
      /^there is no settings file .*absent\.yaml: check/,
    );
    expect(errorOf(undefined, { file: folder })).toMatch(/cannot be read \(EISDIR\): check the path/);
  });

  it("warns about a variable that looks like a misspelt setting", () => {
    const message = "the environment sets MDS_BASEURL, which is not a setting";
    const { warnings } = load(undefined, { env: { MDS_BASEURL: "x" } });
    expect(warnings).toEqual([{ message, remedy: "did you mean MDS_BASE_URL?" }]);
  });
});

describe("the client secret", () => {
  const canary = "s3cr3t-canary-7f1e";

  it.each(["clientSecret", "client_secret", "secret", "password", "accessToken"])(
    "is rejected in the file as service.%s, without being printed",
    (key) => {
      const line = errorOf(`service: { ${key}: ${canary} }`);
      expect(line).toBe(
        `FILE: service.${key} looks like a secret, which does not belong in this file: remove it and name a file in service.clientSecretFile, or set MDS_CLIENT_SECRET`,
      );
    },
  );

  it.each([
    `baseUrl: "https://user:${canary}@example.com"`,
    `baseUrl: "https://u:p@${canary}@example.com"`,
    `baseUrl: "https://example.com?apikey=${canary}"`,
  ])("is not printed when it is part of an address: %s", (setting) => {
    expect(errorOf(`service: { ${setting} }`)).not.toContain(canary);
  });

  it("of the shared warehouse is rejected in the file and in its address, and read from a file of its own", () => {
    expect(errorOf(`shared: { password: ${canary} }`)).toBe(
      "FILE: shared.password looks like a secret, which does not belong in this file: remove it and name a file in shared.passwordFile, or set MDS_SHARED_PASSWORD",
    );
    const inAddress = errorOf(`shared: { url: "postgres://mds:${canary}@db/market" }`);
    expect(inAddress).toContain("without the password");
    expect(inAddress).not.toContain(canary);
    const file = join(temporaryFolder(), "password");
    writeFileSync(file, `${canary}\n`, { mode: 0o600 });
    const url = "postgres://mds@db.example.com/market?sslmode=verify-full";
    const loaded = load(`shared: { url: "${url}", passwordFile: ${file} }`);
    expect(loaded.settings.shared.url).toBe(url);
    expect(loaded.sharedPassword.read()).toBe(canary);
    expect(inspect(loaded, { depth: 9 })).not.toContain(canary);
    expect(load(undefined, { env: { MDS_SHARED_PASSWORD: canary } }).sharedPassword.read()).toBe(canary);
    expect(load(undefined).settings.shared).toMatchObject({ url: "", role: "alone", leaseSeconds: 15 });
  });

  it("is rejected inside the heartbeat address, where it would be printed", () => {
    const error = errorOf(`telemetry: { heartbeatUrl: "https://user:${canary}@example.com" }`);
    expect(error).not.toContain(canary);
  });

  it("is not shown by printing the loaded settings", () => {
    const loaded = load(undefined, { env: { MDS_CLIENT_SECRET: canary } });
    expect(loaded.secret.read()).toBe(canary);
    expect(JSON.stringify(loaded) + inspect(loaded, { depth: 10, showHidden: true })).not.toContain(canary);
  });

  it("is read from its file each time, so that a rotated one is used", () => {
    const file = join(temporaryFolder(), "secret");
    writeFileSync(file, "first\n", { mode: 0o600 });
    const { secret, warnings } = load(undefined, { env: { MDS_CLIENT_SECRET_FILE: file } });
    expect(secret.read()).toBe("first");
    writeFileSync(file, "second\n");
    expect(secret.read()).toBe("second");
    expect(warnings).toEqual([]);
  });

  it("causes a warning if other users can read its file", () => {
    const file = join(temporaryFolder(), "the secret");
    writeFileSync(file, canary, { mode: 0o644 });
    const { warnings } = load(undefined, { env: { MDS_CLIENT_SECRET_FILE: file } });
    const message = `the secret file ${file} can be read by other users`;
    expect(warnings).toEqual([{ message, remedy: `chmod o= '${file}'` }]);
  });

  it("cannot be a folder, and then nobody is told to change its permissions", () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o777);
    const { secret, warnings } = load(undefined, { env: { MDS_CLIENT_SECRET_FILE: folder } });
    expect(warnings).toEqual([]);
    const message = `the secret file ${folder} is a folder`;
    const remedy = "name the file with the client secret in service.clientSecretFile";
    expect(() => secret.read()).toThrow(expect.objectContaining({ message, remedy }));
  });

  it("reports that its file is missing or empty, or that none is set", () => {
    const empty = join(temporaryFolder(), "empty");
    writeFileSync(empty, "\n");
    const read = (env: Record<string, string>) => () => load(undefined, { env }).secret.read();
    const nowhere = read({ MDS_CLIENT_SECRET_FILE: "/nowhere/secret" });
    expect(nowhere).toThrow("the secret file /nowhere/secret cannot be read (ENOENT)");
    expect(read({ MDS_CLIENT_SECRET_FILE: empty })).toThrow(`the secret file ${empty} is empty`);
    expect(read({})).toThrow("no client secret is set");
  });
});

describe("the service's settings", () => {
  const complete = {
    ...{ MDS_BASE_URL: "https://rest.example", MDS_WS_URL: "wss://live.example" },
    ...{ MDS_CLIENT_ID: "me", MDS_CLIENT_SECRET: "canary-7f1" },
  };

  it("are complete; the token address defaults to the REST address", async () => {
    const require = (env: Record<string, string>) => requireServiceSettings(load(undefined, { env }));
    const { readSecret, ...rest } = require(complete);
    const baseUrl = "https://rest.example";
    const urls = { baseUrl, authUrl: baseUrl, wsUrl: "wss://live.example" };
    const defaults = { concurrency: 8, maxRequestsPerSecond: 0, refreshSeconds: 30 };
    expect(rest).toEqual({ ...urls, clientId: "me", ...defaults });
    expect(await readSecret()).toBe("canary-7f1");
    expect(require({ ...complete, MDS_AUTH_URL: "https://id.example" }).authUrl).toBe("https://id.example");
  });

  it("report in one line everything that is not set, and how to set it", () => {
    expect(errorOf(undefined)).toBe(
      "service.baseUrl, service.wsUrl, service.clientId and the client secret are not set: " +
        "set MDS_BASE_URL, MDS_WS_URL, MDS_CLIENT_ID and MDS_CLIENT_SECRET_FILE, or name a settings file with --config",
    );
    expect(errorOf(undefined, { env: { ...complete, MDS_WS_URL: "" } })).toBe(
      "service.wsUrl is not set: set MDS_WS_URL, or name a settings file with --config",
    );
  });
});
