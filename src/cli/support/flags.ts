import type { Command } from "commander";
import { flagName, type LoadedSettings, loadSettings } from "../../config/load-settings.ts";
import { optionEntries } from "../../config/option-table.ts";
import type { Log } from "../../runtime/log.ts";
import { createLogger, type LogLevel, logLevels } from "../../telemetry/logger.ts";
import type { Talk } from "../../telemetry/nonblocking-stderr.ts";
import { makeRoomForTemporaryFiles } from "../../warehouse/sqlite/disk.ts";
import { type CommandContext, usageFailure } from "./context.ts";

export const logLevelFlag = "--log-level <level>";
export const logLevelHelp = `how much is said on stderr: ${logLevels.join(", ")}`;

/** The logger for a command: JSON lines, or lines for eyes on a terminal. */
export function readLogger(level: string, stderr: Talk): Log {
  const known = logLevels.find((name): name is LogLevel => name === level);
  if (known === undefined) {
    throw usageFailure(`--log-level cannot be ${level}`, `give one of ${logLevels.join(", ")}`);
  }
  return createLogger(known, stderr);
}

/** Gives a command the flags of the option table, and `--config`. */
export function addSettingsFlags(command: Command): Command {
  command.option(
    "--config <file>",
    "settings file (else MDS_CONFIG, ./mds-sync.yaml, /etc/mds-sync/mds-sync.yaml)",
  );
  for (const { option } of optionEntries) {
    if (option.flag) command.option(option.flag, option.env ? `${option.help} [${option.env}]` : option.help);
  }
  return command;
}

/** Loads the settings for a command that has those flags; warnings go to the operator at once. */
export function settingsFor(command: Command, context: CommandContext): LoadedSettings {
  const loaded = readSettings(command, context);
  for (const warning of loaded.warnings) context.stderr.write(`mds-sync: warning: ${warning}\n`);
  return loaded;
}

/** The same, for a command that has its own way with warnings. */
export function readSettings(command: Command, context: CommandContext): LoadedSettings {
  const given = command.opts<Record<string, string | undefined>>();
  const flags: Record<string, string> = {};
  for (const { path, option } of optionEntries) {
    const value = option.flag ? given[attributeName(option.flag)] : undefined;
    if (value !== undefined) flags[path] = value;
  }
  const { env, directory } = context;
  const loaded = loadSettings({ env, directory, file: given.config, flags });
  // Here, since it is known by now where the warehouse is, and nobody has opened it yet.
  makeRoomForTemporaryFiles(loaded.settings.warehouse.path, env);
  return loaded;
}

/** `--base-url <url>` is `baseUrl` among commander's values. */
function attributeName(flag: string): string {
  return flagName(flag)
    .slice(2)
    .replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
