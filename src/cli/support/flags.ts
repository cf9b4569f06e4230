import type { Command } from "commander";
import { flagName, type LoadedSettings, loadSettings } from "../../config/load-settings.ts";
import { optionEntries } from "../../config/option-table.ts";
import type { Log } from "../../runtime/log.ts";
import { createLogger, type LogLevel, logLevels } from "../../telemetry/logger.ts";
import type { TextOutput } from "../../telemetry/nonblocking-stderr.ts";
import { ensureTempFolder } from "../../warehouse/sqlite/disk.ts";
import { type CommandContext, usageFailure } from "./context.ts";

export const LOG_LEVEL_FLAG = "--log-level <level>";
export const LOG_LEVEL_HELP = `log level on stderr: ${logLevels.join(", ")}`;

/** Creates the logger for a `--log-level` value. */
export function createCommandLogger(level: string, stderr: TextOutput): Log {
  const known = logLevels.find((name): name is LogLevel => name === level);
  if (known === undefined) {
    throw usageFailure(`--log-level cannot be ${level}`, `give one of ${logLevels.join(", ")}`);
  }
  return createLogger(known, stderr);
}

/** Adds `--config` and the flags of the option table to a command. */
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

/** The flag that moves a warehouse to another service. */
export const ADOPT_FLAG = "--adopt";
export const ADOPT_HELP =
  "let the warehouse change to another service; otherwise it is refused, before anything is stored";

/** Loads the settings of a command and writes their warnings to stderr. */
export function loadSettingsAndWarn(command: Command, context: CommandContext): LoadedSettings {
  const loaded = loadSettingsFromFlags(command, context);
  for (const { message, remedy } of loaded.warnings)
    context.stderr.write(`mds-sync: warning: ${message}: ${remedy}\n`);
  return loaded;
}

/** Loads the settings; the caller handles the warnings. */
export function loadSettingsFromFlags(command: Command, context: CommandContext): LoadedSettings {
  const given = command.opts<Record<string, string | undefined>>();
  const flags: Record<string, string> = {};
  for (const { path, option } of optionEntries) {
    const value = option.flag ? given[commanderKey(option.flag)] : undefined;
    if (value !== undefined) flags[path] = value;
  }
  const { env, directory } = context;
  const loaded = loadSettings({ env, directory, file: given.config, flags });
  // This must run once the path is known and before anything opens the warehouse.
  ensureTempFolder(loaded.settings.warehouse.path, env);
  return loaded;
}

/** `--base-url <url>` → `baseUrl`, the key in commander's options. */
function commanderKey(flag: string): string {
  return flagName(flag)
    .slice(2)
    .replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
