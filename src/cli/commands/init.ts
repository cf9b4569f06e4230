import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import type { LoadedSettings } from "../../config/load-settings.ts";
import { optionEntries } from "../../config/option-table.ts";
import { type CommandContext, usageFailure } from "../support/context.ts";
import { addSettingsFlags, settingsFor } from "../support/flags.ts";
import { fillUnit, isElsewhere, isInHome, stateDirectory } from "./systemd-unit.ts";

/** Beside `src` in a clone, beside `dist` in an installed package. */
const shipped = join(dirname(fileURLToPath(import.meta.url)), "../../../config");
const thisProgram = import.meta.url.endsWith(".ts") ? "main.ts" : "main.js";
const usualSecretFile = "/etc/mds-sync/client-secret";

interface Flags {
  dir: string;
  force?: boolean;
  config?: string;
}

export function addInitCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("init"))
    .summary("write a commented settings file and a systemd unit for this installation")
    .description(
      "Writes DIR/mds-sync.yaml, with the values that flags and environment give, and DIR/mds-sync.service, with the " +
        "paths of this installation. Says what to do next. Never writes the client secret.",
    )
    .option("--dir <dir>", "where to write both files", ".")
    .option("--force", "replace files that exist")
    .action((flags: Flags, command: Command) => {
      if (flags.config !== undefined)
        throw usageFailure("init reads no settings file", "leave --config out, give --dir");
      const settingsFile = resolve(context.directory, flags.dir, "mds-sync.yaml");
      const unitFile = resolve(context.directory, flags.dir, "mds-sync.service");
      // The shipped file stands in for the one that is yet to be written: whatever lies about here has no say in it.
      const template = join(shipped, "mds-sync.yaml");
      const loaded = settingsFor(command, { ...context, env: { ...context.env, MDS_CONFIG: template } });
      const { clientSecretFile } = loaded.settings.service;
      const secretFile = clientSecretFile ? resolve(context.directory, clientSecretFile) : usualSecretFile;
      const installation = {
        node: realpathSync(process.execPath),
        program: join(dirname(fileURLToPath(import.meta.url)), "..", thisProgram),
        settingsFile,
        secretFile,
        warehouse: loaded.settings.warehouse.path,
      };
      const unit = readFileSync(join(shipped, "mds-sync.service"), "utf8");
      write(
        new Map([
          [settingsFile, fillSettings(readFileSync(template, "utf8"), givenValues(loaded))],
          [unitFile, fillUnit(unit, installation)],
        ]),
        flags.force ?? false,
      );
      const talk = [
        `wrote ${settingsFile}`,
        `wrote ${unitFile}`,
        ...warnings(installation.program, loaded),
        "next:",
        ...nextSteps(loaded, { settingsFile, unitFile, secretFile }).map((step, n) => `  ${n + 1}. ${step}`),
      ];
      context.stderr.write(`${talk.join("\n")}\n`);
    });
}

/** What flags and environment give, as YAML. */
function givenValues({ settings, origins }: LoadedSettings): Map<string, string> {
  const values = new Map<string, string>();
  for (const { path } of optionEntries) {
    if (!/^(--|MDS_)/.test(origins.get(path) ?? "")) continue;
    const value = path
      .split(".")
      .reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], settings);
    values.set(path, yamlText(String(value)));
  }
  return values;
}

function write(files: ReadonlyMap<string, string>, force: boolean): void {
  const taken = [...files.keys()].find((file) => existsSync(file));
  if (taken !== undefined && !force)
    throw usageFailure(`${taken} exists`, "give another --dir, or --force to replace it");
  for (const [file, content] of files) {
    try {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content, { flag: force ? "w" : "wx" });
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
      throw usageFailure(`${file} cannot be written (${code})`, "give a --dir that this user may write to");
    }
  }
}

function warnings(program: string, { secret, settings }: LoadedSettings): string[] {
  const { path } = settings.warehouse;
  return [
    secret.origin === "environment" ? ["the secret in MDS_CLIENT_SECRET was written nowhere: see below"] : [],
    program.includes("/_npx/")
      ? [`${program} is npx's cache, which npm may empty: install mds-sync, and run init again`]
      : [],
    isInHome(program) ? [`${program} lies in a home: the user mds-sync must be able to read it`] : [],
    isElsewhere(path) ? [`the user mds-sync must be able to write to ${dirname(path)}`] : [],
  ].flatMap((lines) => lines.map((line) => `mds-sync: warning: ${line}`));
}

function nextSteps(
  { settings }: LoadedSettings,
  files: { settingsFile: string; unitFile: string; secretFile: string },
): string[] {
  const missing = (["baseUrl", "wsUrl", "clientId"] as const).filter((key) => !settings.service[key]);
  const { path } = settings.warehouse;
  return [
    ...(missing.length > 0
      ? [`set ${missing.map((key) => `service.${key}`).join(", ")} in ${files.settingsFile}`]
      : []),
    `add the user:       sudo useradd --system --user-group --home-dir ${stateDirectory} --shell /usr/sbin/nologin mds-sync`,
    `put the secret in:  sudo install -D -m 600 /dev/stdin ${files.secretFile}`,
    `start the service:  sudo cp ${files.unitFile} /etc/systemd/system/ && sudo systemctl daemon-reload && sudo systemctl enable --now mds-sync`,
    `the warehouse will be ${resolve(stateDirectory, path)}`,
  ];
}

/** The commented settings file with values put in; `values` are YAML by the path of their setting (`service.baseUrl`). */
export function fillSettings(template: string, values: ReadonlyMap<string, string>): string {
  let section = "";
  return template
    .split("\n")
    .map((line) => {
      section = /^(\w+):/.exec(line)?.[1] ?? section;
      const [, key = "", comment = ""] = /^ {2}(?:# )?(\w+):.*?( +#.*)?$/.exec(line) ?? [];
      const value = values.get(`${section}.${key}`);
      if (value === undefined) return line;
      const setting = `  ${key}: ${value}`;
      return comment === ""
        ? setting
        : `${setting.padEnd(line.length - comment.trimStart().length - 1)} ${comment.trimStart()}`;
    })
    .join("\n");
}

/** Plain where it cannot be read as anything but text. */
export function yamlText(value: string): string {
  return /^[\w/.](?:[\w/.-]|:(?=[\w/.-]))*$/.test(value) ? value : JSON.stringify(value);
}
