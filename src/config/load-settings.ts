import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { LineCounter, parseDocument } from "yaml";
import { findClosestWord } from "../model/did-you-mean.ts";
import { errorCode, Failure } from "../model/failure.ts";
import { optionEntries, optionNames, type Settings, toggleGroupPaths } from "./option-table.ts";
import { describeExpected, type RawValue } from "./option-types.ts";
import { clientSecret, createSecretSource, type SettingsWarning, sharedPassword } from "./secret.ts";

export interface SettingsSources {
  env: Readonly<Record<string, string | undefined>>;
  /** Values of flags by the path of their setting. */
  flags?: Readonly<Record<string, string | undefined>>;
  /** `--config`. */
  file?: string | undefined;
  /** Where to look for ./mds-sync.yaml. Absent: no file is read, not even the system's. */
  directory?: string;
}

export type LoadedSettings = Readonly<ReturnType<typeof loadSettings>>;

const secretEnvName = clientSecret.variable;
const otherEnvNames = [secretEnvName, sharedPassword.variable, "MDS_CONFIG"];

/** A mistake in the settings, and what to do about it. */
type Mistake = SettingsWarning;

/** Flags override the environment, which overrides the file. Throws if any value is invalid, naming all (exit code 2). */
export function loadSettings(sources: SettingsSources) {
  const { env, directory, flags = {} } = sources;
  const explicitPath = sources.file ?? (env.MDS_CONFIG || undefined);
  const file = directory === undefined ? undefined : findSettingsFile(explicitPath, directory);
  const { values, disabledGroups, mistakes } = readSettingsFile(file);
  const settings: Record<string, unknown> = {};
  /** Where each value comes from: `default`, a file's path, a variable's name or a flag. */
  const origins = new Map<string, string>();
  for (const { path, option } of optionEntries) {
    const group = disabledGroups.find((candidate) => path.startsWith(`${candidate}.`));
    if (group !== undefined) {
      setAtPath(settings, group, false);
      origins.set(group, file?.path ?? "");
      continue;
    }
    setAtPath(settings, path, option.defaultValue);
    origins.set(path, "default");
    const { env: variable = "", flag = "" } = option;
    // In ascending order of precedence: the last one counts, but a mistake in any of them is reported.
    const given: readonly [origin: string | undefined, raw: RawValue | undefined][] = [
      [file?.path, values.get(path)],
      [variable, env[variable] || undefined],
      // Without the placeholder of the flag.
      [flag.split(" ")[0], flags[path]],
    ];
    for (const [origin = "", raw] of given) {
      if (raw === undefined) continue;
      const parsed = option.parse(raw);
      if (parsed) setAtPath(settings, path, parsed.value);
      else
        mistakes.push({
          message: `${origin}: ${path} cannot be ${formatRawValue(raw)}`,
          remedy: `give ${describeExpected(option, raw)}`,
        });
      origins.set(path, origin);
    }
  }
  if (mistakes.length > 0) throw settingsFailure(mistakes);

  const loaded = settings as Settings;
  // A flag overrides the environment, even if the flag names a file and the variable holds the secret itself.
  const hasSecretFileFlag = flags["service.clientSecretFile"] !== undefined;
  const fromEnvironment = hasSecretFileFlag ? undefined : env[secretEnvName];
  const secret = createSecretSource(loaded.service.clientSecretFile, fromEnvironment);
  const { passwordFile } = loaded.shared;
  const password = createSecretSource(passwordFile, env[sharedPassword.variable], sharedPassword);
  return {
    settings: loaded,
    secret,
    /** The password of the shared warehouse. */
    sharedPassword: password,
    origins,
    file: file?.path,
    warnings: [...secret.warnings, ...password.warnings, ...unknownVariableWarnings(env)],
  };
}

/** Whether any setting of a section was given: a section that is left out may turn a part off. */
export function isSectionSet({ origins }: Pick<LoadedSettings, "origins">, section: string): boolean {
  return [...origins].some(([path, origin]) => path.startsWith(`${section}.`) && origin !== "default");
}

/** The values of the file by path, the groups that it turns off, and its mistakes. */
function readSettingsFile(file: SettingsFile | undefined) {
  const values = new Map<string, RawValue>();
  const disabledGroups: string[] = [];
  const mistakes: Mistake[] = [];
  const optionPaths = new Set(optionEntries.map(({ path }) => path));
  const groupPaths = new Set([...optionPaths].flatMap((path) => groupPathsOf(path)));
  const known = [...optionPaths, ...groupPaths];

  const visit = (where: string, node: SettingsFile["content"], prefix: string) => {
    for (const [key, raw] of Object.entries(node)) {
      const path = prefix + key;
      const mayBeFalse = toggleGroupPaths.includes(path);
      if (looksSecret(key)) mistakes.push(describeSecret(where, path));
      else if (optionPaths.has(path)) values.set(path, raw);
      else if (!groupPaths.has(path)) mistakes.push(describeUnknownSetting(where, path, known));
      else if (raw === "false" && mayBeFalse) disabledGroups.push(path);
      else if (typeof raw === "object" && !Array.isArray(raw))
        visit(where, raw as SettingsFile["content"], `${path}.`);
      else if (raw !== "")
        mistakes.push({
          message: `${where}: ${path} is a single value`,
          remedy: `give a mapping of settings${mayBeFalse ? ", or false" : ""}`,
        });
    }
  };
  if (file) visit(file.path, file.content, "");
  return { values, disabledGroups, mistakes };
}

function groupPathsOf(path: string): string[] {
  const parts = path.split(".");
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join("."));
}

function looksSecret(key: string): boolean {
  return /secret|password|passwd|token|api_?key/i.test(key) && !/^(clientSecret|password)File$/.test(key);
}

function describeSecret(where: string, path: string): Mistake {
  return {
    message: `${where}: ${path} looks like a secret, which does not belong in this file`,
    remedy: path.startsWith("shared.")
      ? `remove it and name a file in ${sharedPassword.setting}, or set ${sharedPassword.variable}`
      : `remove it and name a file in ${clientSecret.setting}, or set ${secretEnvName}`,
  };
}

/** Settings of earlier versions, and what to do instead. */
const removedSettings: Readonly<Record<string, string>> = {
  "retention.indexTicks":
    "remove it: the warehouse keeps all index ticks; an export keeps its own copy, and a month of the shared warehouse can be detached",
};

function describeUnknownSetting(where: string, path: string, known: readonly string[]): Mistake {
  const instead = removedSettings[path];
  if (instead !== undefined) return { message: `${where}: ${path} is gone`, remedy: instead };
  const lastPart = (name: string) => name.slice(name.lastIndexOf(".") + 1);
  const sameName = known.filter((name) => lastPart(name).toLowerCase() === lastPart(path).toLowerCase());
  const suggestion = sameName.length === 1 ? sameName[0] : findClosestWord(path, known);
  const remedy = suggestion ? `did you mean ${suggestion}?` : "mds-sync settings lists all settings";
  return { message: `${where}: ${path} is not a setting`, remedy };
}

/** Short, on one line, and without a password or key inside a URL. */
function formatRawValue(raw: RawValue): string {
  const json = JSON.stringify(raw)
    .replace(/(:\/\/)[^"]*@/g, "$1…@")
    .replace(/(:\/\/[^"?#]*)[?#][^"]*/g, "$1?…");
  return json.length > 60 ? `${json.slice(0, 57)}…` : json;
}

function unknownVariableWarnings(env: SettingsSources["env"]): SettingsWarning[] {
  const known = [...optionEntries.flatMap(({ option }) => option.env ?? []), ...otherEnvNames];
  return Object.keys(env)
    .filter((name) => name.startsWith("MDS_") && !known.includes(name))
    .flatMap((name) => {
      const suggestion = findClosestWord(name, known);
      if (suggestion === undefined) return [];
      const message = `the environment sets ${name}, which is not a setting`;
      return [{ message, remedy: `did you mean ${suggestion}?` }];
    });
}

/** The value of a setting such as `service.baseUrl`. */
export function settingAt(settings: object, path: string): unknown {
  return path.split(".").reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], settings);
}

function setAtPath(settings: Record<string, unknown>, path: string, value: unknown): void {
  const parts = path.split(".");
  let node = settings;
  for (const part of parts.slice(0, -1)) {
    node[part] ??= {};
    node = node[part] as Record<string, unknown>;
  }
  node[parts.at(-1) ?? ""] = value;
}

/** One line, with every mistake: an operator corrects them in one go. */
function settingsFailure(mistakes: readonly Mistake[]): Failure {
  const [first] = mistakes;
  const { message, remedy } =
    mistakes.length === 1 && first
      ? first
      : {
          message: `${mistakes.length} settings are wrong: ${mistakes
            .map((mistake, i) => `(${i + 1}) ${mistake.message} (${mistake.remedy})`)
            .join("; ")}`,
          remedy: "correct all of them; `mds-sync settings` checks again",
        };
  return new Failure(message, { code: "settings", remedy });
}

interface SettingsFile {
  readonly path: string;
  readonly content: { readonly [key: string]: RawValue };
}

const SYSTEM_SETTINGS_PATH = "/etc/mds-sync/mds-sync.yaml";

/** Reads the file at `explicitPath`, else ./mds-sync.yaml, else the system's file, else none. */
function findSettingsFile(explicitPath: string | undefined, directory: string): SettingsFile | undefined {
  const paths = explicitPath ? [explicitPath] : [join(directory, "mds-sync.yaml"), SYSTEM_SETTINGS_PATH];
  for (const path of paths) {
    const text = readTextIfExists(path);
    if (text !== undefined) return parseSettingsFile(path, text);
  }
  if (explicitPath === undefined) return undefined;
  throw settingsFileFailure(`there is no settings file ${explicitPath}`, "check --config and MDS_CONFIG");
}

function readTextIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw settingsFileFailure(
      `${path} cannot be read (${code})`,
      "check the path and the file's permissions",
    );
  }
}

/**
 * Every scalar stays text (YAML's failsafe schema); the options parse it. Errors name line and column, never the
 * content, which might be a misplaced secret.
 */
function parseSettingsFile(path: string, text: string): SettingsFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { schema: "failsafe", lineCounter: lines, prettyErrors: false });
  const problem = document.errors[0];
  if (problem) {
    const { line, col } = lines.linePos(problem.pos[0]);
    const hint =
      problem.code === "BAD_ALIAS" ? "put a value that begins with * into quotes" : "fix the YAML there";
    throw settingsFileFailure(`${path}:${line}:${col} is not YAML (${problem.code})`, hint);
  }
  let content: unknown;
  try {
    // Ten lines of aliases can expand to gigabytes.
    content = document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    throw settingsFileFailure(`${path} uses YAML aliases`, "write each value out");
  }
  if (content === null || content === "") return { path, content: {} };
  if (typeof content === "object" && !Array.isArray(content))
    return { path, content: content as SettingsFile["content"] };
  throw settingsFileFailure(`${path} is not a mapping of settings`, "begin with a section such as service:");
}

function settingsFileFailure(message: string, remedy: string): Failure {
  return new Failure(message, { code: "settings_file", remedy });
}

export type ServiceSettings = ReturnType<typeof requireServiceSettings>;

/** The settings that a client of the service needs. Throws if one is missing; the message names all that are. */
export function requireServiceSettings({ settings, secret }: LoadedSettings) {
  const { baseUrl, wsUrl, clientId, authUrl = baseUrl } = settings.service;
  const { concurrency, maxRequestsPerSecond, refreshSeconds } = settings.service;
  const isSecretSet = secret.origin !== "not set";
  if (baseUrl === undefined || authUrl === undefined || wsUrl === undefined || !clientId || !isSecretSet)
    throw unsetFailure([
      ...(["baseUrl", "wsUrl", "clientId"] as const).flatMap((name) =>
        settings.service[name] ? [] : [{ name: `service.${name}`, env: optionNames[`service.${name}`].env }],
      ),
      ...(isSecretSet ? [] : [{ name: "the client secret", env: "MDS_CLIENT_SECRET_FILE" }]),
    ]);
  const limits = { concurrency, maxRequestsPerSecond, refreshSeconds };
  // Reads the secret each time, so that a rotated one needs no restart.
  return { ...limits, baseUrl, authUrl, wsUrl, clientId, readSecret: async () => secret.read() };
}

function unsetFailure(missing: readonly { readonly name: string; readonly env: string }[]): Failure {
  const list = (key: "name" | "env") =>
    new Intl.ListFormat("en-GB").format(missing.map((setting) => setting[key]));
  return new Failure(`${list("name")} ${missing.length > 1 ? "are" : "is"} not set`, {
    code: "service_unset",
    remedy: `set ${list("env")}, or name a settings file with --config`,
  });
}

export type SharedSettings = NonNullable<ReturnType<typeof findSharedSettings>>;

/** The settings of the shared warehouse; undefined: there is none. */
export function findSharedSettings({ settings, sharedPassword }: LoadedSettings) {
  const { url, role, name, leaseSeconds } = settings.shared;
  if (url === "") return undefined;
  return {
    url,
    role,
    name: name || hostname(),
    leaseSeconds,
    /** Reads the password each time, so that a rotated one needs no restart; undefined: none is set. */
    readPassword: () => (sharedPassword.origin === "not set" ? undefined : sharedPassword.read()),
  };
}

export function requireSharedSettings(loaded: LoadedSettings): SharedSettings {
  const found = findSharedSettings(loaded);
  if (found) return found;
  throw new Failure("shared.url is not set", {
    code: "share_unset",
    remedy: "set MDS_SHARED_URL to the PostgreSQL database, for example postgres://user@host:5432/database",
  });
}
