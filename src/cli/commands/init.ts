import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Command } from "commander";
import { type LoadedSettings, settingAt } from "../../config/load-settings.ts";
import { optionEntries } from "../../config/option-table.ts";
import { errorCode, usageFailure } from "../../model/failure.ts";
import { packageFolder, programFile } from "../../runtime/child-process.ts";
import { createFolder } from "../../warehouse/sqlite/disk.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../support/flags.ts";

const SHIPPED_CONFIG = join(packageFolder, "config");
const DEFAULT_SECRET_FILE = "/etc/mds-sync/client-secret";

interface Installation {
  readonly node: string;
  readonly program: string;
  readonly settingsFile: string;
  readonly unitFile: string;
  readonly secretFile: string;
  /** As in the settings; relative to the working directory, which is the state directory. */
  readonly warehouse: string;
}

/** The directory that systemd creates for the service; also its working directory. */
const STATE_DIRECTORY = "/var/lib/mds-sync";

export function addInitCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("init"))
    .description(
      "Writes DIR/mds-sync.yaml, with the values of the flags and the environment, and DIR/mds-sync.service, with the " +
        "paths of this installation. Prints what to do next. Never writes the client secret.",
    )
    .option("--dir <dir>", "where to write both files", ".")
    .option("--force", "replace files that exist")
    .action((flags: { dir: string; force?: boolean; config?: string }, command: Command) => {
      if (flags.config !== undefined)
        throw usageFailure("init reads no settings file", "leave --config out, give --dir");
      const settingsFile = resolve(context.directory, flags.dir, "mds-sync.yaml");
      const unitFile = resolve(context.directory, flags.dir, "mds-sync.service");
      // Load the shipped template, so that a settings file in the working directory has no influence.
      const template = join(SHIPPED_CONFIG, "mds-sync.yaml");
      const loaded = loadSettingsAndWarn(command, {
        ...context,
        env: { ...context.env, MDS_CONFIG: template },
      });
      const installation = {
        node: realpathSync(process.execPath),
        program: programFile,
        settingsFile,
        unitFile,
        secretFile: resolve(
          context.directory,
          loaded.settings.service.clientSecretFile || DEFAULT_SECRET_FILE,
        ),
        warehouse: loaded.settings.warehouse.path,
      };
      const unit = readFileSync(join(SHIPPED_CONFIG, "mds-sync.service"), "utf8");
      writeFiles(
        new Map([
          [settingsFile, fillSettings(readFileSync(template, "utf8"), readGivenValues(loaded))],
          [unitFile, fillUnit(unit, installation)],
        ]),
        flags.force ?? false,
      );
      const lines = [
        `wrote ${settingsFile}`,
        `wrote ${unitFile}`,
        ...listWarnings(loaded, installation),
        "next:",
        ...listNextSteps(loaded, installation).map((step, n) => `  ${n + 1}. ${step}`),
      ];
      context.stderr.write(`${lines.join("\n")}\n`);
    });
}

/** The values that come from flags and the environment, as YAML. */
function readGivenValues({ settings, origins }: LoadedSettings): Map<string, string> {
  const given = optionEntries.filter(({ path }) => /^(--|MDS_)/.test(origins.get(path) ?? ""));
  return new Map(given.map(({ path }) => [path, toYaml(String(settingAt(settings, path)))]));
}

function writeFiles(files: ReadonlyMap<string, string>, force: boolean): void {
  const existing = [...files.keys()].find((file) => existsSync(file));
  if (existing !== undefined && !force)
    throw usageFailure(`${existing} exists`, "give another --dir, or --force to replace it");
  for (const [file, content] of files) {
    try {
      createFolder(dirname(file));
      writeFileSync(file, content, { flag: force ? "w" : "wx" });
    } catch (error) {
      throw usageFailure(
        `${file} cannot be written (${errorCode(error)})`,
        "give a --dir that this user may write to",
      );
    }
  }
}

function listWarnings({ secret }: LoadedSettings, { program, warehouse }: Installation): string[] {
  const warnings = [
    secret.origin === "environment" && "the secret in MDS_CLIENT_SECRET was not written: see below",
    program.includes("/_npx/") &&
      `${program} is in npx's cache, which npm may delete: install mds-sync, and run init again`,
    isInHome(program) && `${program} is in a home directory: the user mds-sync must be able to read it`,
    isOutsideStateDirectory(warehouse) && `the user mds-sync must be able to write to ${dirname(warehouse)}`,
  ];
  return warnings.filter((line) => line !== false).map((line) => `mds-sync: warning: ${line}`);
}

function listNextSteps({ settings }: LoadedSettings, files: Installation): string[] {
  const missing = (["baseUrl", "wsUrl", "clientId"] as const).filter((key) => !settings.service[key]);
  const names = missing.map((key) => `service.${key}`).join(", ");
  return [
    ...(names === "" ? [] : [`set ${names} in ${files.settingsFile}`]),
    `add the user:       sudo useradd --system --user-group --home-dir ${STATE_DIRECTORY} --shell /usr/sbin/nologin mds-sync`,
    `put the secret in:  sudo install -D -m 600 /dev/stdin ${files.secretFile}  # type it, then Ctrl-D`,
    `start the service:  sudo cp ${files.unitFile} /etc/systemd/system/ && sudo systemctl daemon-reload && sudo systemctl enable --now mds-sync`,
    `the warehouse will be ${resolve(STATE_DIRECTORY, files.warehouse)}`,
  ];
}

/** Inserts values into the commented settings file; `values` maps paths (`service.baseUrl`) to YAML. */
function fillSettings(template: string, values: ReadonlyMap<string, string>): string {
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

/** Unquoted only if YAML cannot read it as anything but text. */
function toYaml(value: string): string {
  return /^[\w/.](?:[\w/.-]|:(?=[\w/.-]))*$/.test(value) ? value : JSON.stringify(value);
}

export function fillUnit(template: string, installation: Omit<Installation, "unitFile">): string {
  const { node, program, settingsFile, secretFile, warehouse } = installation;
  const command = [node, program, "run", "--config", settingsFile].map(quoteArgument).join(" ");
  const lines: Record<string, string> = {
    Documentation: `file://${encodeURI(settingsFile)}`.replaceAll("%", "%%"),
    ExecStart: command,
    LoadCredential: `client-secret:${escapePercent(secretFile)}`,
  };
  if ([node, program, settingsFile].some(isInHome)) lines.ProtectHome = "read-only";
  const needsWritePath = isOutsideStateDirectory(warehouse);
  return template
    .split("\n")
    .filter((line) => !line.startsWith("#   ") && !line.startsWith("# mds-sync as a system service"))
    .flatMap((line) => {
      const key = /^(\w+)=/.exec(line)?.[1] ?? "";
      const filled = Object.hasOwn(lines, key) ? `${key}=${lines[key]}` : line;
      return needsWritePath && key === "ProtectSystem"
        ? [filled, `ReadWritePaths=${quoteArgument(dirname(warehouse))}`]
        : [filled];
    })
    .join("\n");
}

function isOutsideStateDirectory(warehouse: string): boolean {
  return isAbsolute(warehouse) && !warehouse.startsWith(`${STATE_DIRECTORY}/`);
}

function isInHome(path: string): boolean {
  return /^\/(home|root|run\/user)\//.test(path);
}

/** Quotes one word of a line that systemd splits into words. */
function quoteArgument(text: string): string {
  const escaped = escapePercent(text).replaceAll("$", "$$$$");
  return /^[\w/.:@%+-]+$/.test(escaped) ? escaped : `"${escaped.replace(/["\\]/g, "\\$&")}"`;
}

/** In a unit file, a percent sign starts a specifier. */
function escapePercent(text: string): string {
  return text.replaceAll("%", "%%");
}
