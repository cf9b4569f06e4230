import { nearest } from "../model/did-you-mean.ts";
import { exitCode, Failure } from "../model/failure.ts";
import { optionEntries, type Settings, switchPaths } from "./option-table.ts";
import type { Raw } from "./option-types.ts";
import { type SecretSource, secretSource } from "./secret.ts";
import { findSettingsFile, type SettingsFile } from "./settings-file.ts";

export interface SettingsSources {
  /** The environment, as in process.env. */
  env: Readonly<Record<string, string | undefined>>;
  /** Values of flags by the path of the setting that they set. */
  flags?: Readonly<Record<string, string>>;
  /** `--config`. */
  file?: string | undefined;
  /** Where ./mds-sync.yaml is looked for. Left out: no file is read, neither there nor the system's. */
  directory?: string;
}

export interface LoadedSettings {
  readonly settings: Settings;
  readonly secret: SecretSource;
  /** Where each setting's value comes from: `default`, a file's path, a variable's name or a flag. */
  readonly origins: ReadonlyMap<string, string>;
  readonly file: string | undefined;
  /** What is allowed, but worth a word to the operator. */
  readonly warnings: readonly string[];
}

interface Given {
  raw: Raw;
  origin: string;
}

const secretVariable = "MDS_CLIENT_SECRET";
const otherVariables = [secretVariable, "MDS_CONFIG"];

/** File, environment, flags, in that order of weight; one line and exit 2 for the first thing that is wrong. */
export function loadSettings(sources: SettingsSources): LoadedSettings {
  const { env, directory } = sources;
  const named = sources.file ?? (env.MDS_CONFIG || undefined);
  const file = directory === undefined ? undefined : findSettingsFile(named, directory);
  const given = new Map<string, Given>();
  const switchedOff = new Map<string, string>();
  if (file) takeFile(file, given, switchedOff);
  for (const { path, option } of optionEntries) {
    const fromEnvironment = option.env ? sources.env[option.env] : undefined;
    if (fromEnvironment) given.set(path, { raw: fromEnvironment, origin: option.env ?? "" });
    const fromFlag = sources.flags?.[path];
    if (fromFlag !== undefined) given.set(path, { raw: fromFlag, origin: flagName(option.flag) });
  }

  const settings: Record<string, unknown> = {};
  const origins = new Map<string, string>();
  for (const { path, option } of optionEntries) {
    const group = switchPaths.find((candidate) => path.startsWith(`${candidate}.`));
    const off = group === undefined ? undefined : switchedOff.get(group);
    if (group !== undefined && off !== undefined) {
      place(settings, group, false);
      origins.set(group, off);
      continue;
    }
    const value = given.get(path);
    place(settings, path, value ? readValue(path, value, option.read) : option.fallback);
    origins.set(path, value?.origin ?? "default");
  }

  const complete = settings as Settings;
  // A flag beats the environment, also where one names a file and the other holds the secret itself.
  const isFlagged = sources.flags?.["service.clientSecretFile"] !== undefined;
  const fromEnvironment = isFlagged ? undefined : sources.env[secretVariable];
  const secret = secretSource(complete.service.clientSecretFile, fromEnvironment);
  return {
    settings: complete,
    secret,
    origins,
    file: file?.path,
    warnings: [...secret.warnings, ...unknownVariables(sources.env)],
  };
}

/** The name of a flag without its placeholder: `--base-url`. */
export function flagName(flag: string | undefined): string {
  return flag?.split(" ")[0] ?? "";
}

function takeFile(file: SettingsFile, given: Map<string, Given>, switchedOff: Map<string, string>): void {
  const leaves = new Set(optionEntries.map(({ path }) => path));
  const groups = new Set([...leaves].flatMap((path) => prefixes(path)));
  const known = [...leaves, ...groups];

  const visit = (node: { readonly [key: string]: Raw }, prefix: string) => {
    for (const [key, raw] of Object.entries(node)) {
      const path = prefix + key;
      if (looksSecret(key)) refuseSecret(file, path);
      if (leaves.has(path)) given.set(path, { raw, origin: file.path });
      else if (!groups.has(path)) refuseUnknown(file, path, known);
      else if (raw === "false" && switchPaths.includes(path)) switchedOff.set(path, file.path);
      else if (typeof raw === "object" && !Array.isArray(raw))
        visit(raw as { [key: string]: Raw }, `${path}.`);
      else if (raw !== "") {
        const wanted = switchPaths.includes(path)
          ? "a mapping of settings, or false"
          : "a mapping of settings";
        throw wrong(`${file.path}: ${path} holds a single value`, `give ${wanted}`);
      }
    }
  };
  visit(file.content, "");
}

function prefixes(path: string): string[] {
  const parts = path.split(".");
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join("."));
}

function looksSecret(key: string): boolean {
  return /secret|password|passwd|token|api_?key/i.test(key) && key !== "clientSecretFile";
}

function refuseSecret(file: SettingsFile, path: string): never {
  throw wrong(
    `${file.path}: ${path} looks like a secret, which has no place in this file`,
    `remove it, and name a file in service.clientSecretFile or set ${secretVariable}`,
  );
}

function refuseUnknown(file: SettingsFile, path: string, known: readonly string[]): never {
  const last = (name: string) => name.slice(name.lastIndexOf(".") + 1);
  const misplaced = known.filter((name) => last(name).toLowerCase() === last(path).toLowerCase());
  const meant = misplaced.length === 1 ? misplaced[0] : nearest(path, known);
  const remedy = meant ? `did you mean ${meant}?` : "mds-sync settings lists those there are";
  throw wrong(`${file.path}: ${path} is not a setting`, remedy);
}

function readValue(
  path: string,
  { raw, origin }: Given,
  read: (raw: Raw) => { value: unknown } | { wanted: string },
): unknown {
  const reading = read(raw);
  if ("value" in reading) return reading.value;
  throw wrong(`${origin}: ${path} cannot be ${describe(raw)}`, `give ${reading.wanted}`);
}

/** Short, on one line, and without what might be a password or a key inside an address. */
function describe(raw: Raw): string {
  const json = JSON.stringify(raw)
    .replace(/(:\/\/)[^"]*@/g, "$1…@")
    .replace(/(:\/\/[^"?#]*)[?#][^"]*/g, "$1?…");
  return json.length > 60 ? `${json.slice(0, 57)}…` : json;
}

function unknownVariables(env: SettingsSources["env"]): string[] {
  const known = [...optionEntries.flatMap(({ option }) => option.env ?? []), ...otherVariables];
  return Object.keys(env)
    .filter((name) => name.startsWith("MDS_") && !known.includes(name))
    .flatMap((name) => {
      const meant = nearest(name, known);
      return meant ? [`the environment sets ${name}, which is not a setting: did you mean ${meant}?`] : [];
    });
}

function place(settings: Record<string, unknown>, path: string, value: unknown): void {
  const parts = path.split(".");
  let node = settings;
  for (const part of parts.slice(0, -1)) {
    node[part] ??= {};
    node = node[part] as Record<string, unknown>;
  }
  node[parts.at(-1) ?? ""] = value;
}

function wrong(message: string, remedy: string): Failure {
  return new Failure(message, { family: "operator", code: "settings", remedy, exit: exitCode.usage });
}
