import { type Command, Option } from "commander";
import { type LoadedSettings, loadSettings } from "../../config/load-settings.ts";
import { optionEntries } from "../../config/option-table.ts";
import { describeExpected, type Option as Setting } from "../../config/option-types.ts";
import { usageFailure } from "../../model/failure.ts";
import { MICROS_PER_SECOND } from "../../model/time.ts";
import type { Log } from "../../runtime/log.ts";
import { createLogger, type LogLevel, logLevels } from "../../telemetry/logger.ts";
import type { TextOutput } from "../../telemetry/nonblocking-stderr.ts";
import { ensureTempFolder } from "../../warehouse/sqlite/disk.ts";
import { type CommandContext, type CommonFlags, hasBars, SETTINGS_HEADING } from "./context.ts";

/** How often the service must repeat that it has nothing, in the units of the sync. */
export function toConfirmationRules({ sync: { withdrawals } }: LoadedSettings["settings"]) {
  return { answers: withdrawals.answers, over: withdrawals.over * MICROS_PER_SECOND };
}

/** `note`: the level without the flag. */
export const logLevelOption = (note = "") =>
  ["--log-level <level>", `log level on stderr: ${logLevels.join(", ")}${note}`] as const;

export function createCommandLogger(level: string, stderr: TextOutput): Log {
  const known = logLevels.find((name): name is LogLevel => name === level);
  if (known === undefined) {
    throw usageFailure(`--log-level cannot be ${level}`, `give one of ${logLevels.join(", ")}`);
  }
  return createLogger(known, stderr);
}

/** Reads the value of a flag that no setting has. */
export function readFlag<T>(flag: string, text: string, option: Pick<Setting<T>, "parse" | "expected">): T {
  const result = option.parse(text);
  if (result) return result.value;
  throw usageFailure(`${flag} cannot be ${text}`, `give ${describeExpected(option, text)}`);
}

/** Reads the value of a flag that takes one of a few words. */
export function readChoice<Choice extends string>(
  flag: string,
  text: string,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((known) => known === text);
  if (choice !== undefined) return choice;
  const list = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(choices);
  throw usageFailure(`${flag} cannot be ${text}`, `give ${list}`);
}

/** Commander's parser for an option that may be repeated. */
export function collectValues(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}

/** The sections of the settings that have flags. */
const flagSections = ["service", "warehouse", "http", "serve"] as const;
type FlagSection = (typeof flagSections)[number];

/**
 * Adds `--config` and the flags of the option table to a command. Its help lists those of the sections that it uses; all of
 * them are accepted, so that a script can give every command the same flags.
 */
export function addSettingsFlags(command: Command, ...used: readonly FlagSection[]): Command {
  const sections: readonly string[] = used.length === 0 ? flagSections : used;
  command.addOption(
    new Option(
      "--config <file>",
      "settings file (else MDS_CONFIG, ./mds-sync.yaml, /etc/mds-sync/mds-sync.yaml)",
    ).helpGroup(SETTINGS_HEADING),
  );
  for (const { path, option } of optionEntries) {
    if (!option.flag) continue;
    const help = option.env ? `${option.help} [${option.env}]` : option.help;
    const isUsed = sections.includes(path.split(".")[0] ?? "");
    command.addOption(new Option(option.flag, help).helpGroup(SETTINGS_HEADING).hideHelp(!isUsed));
  }
  return command;
}

/** The flag that moves a warehouse to another service. */
export const ADOPT_OPTION = [
  "--adopt",
  "let the warehouse change to another service; otherwise it is refused, before anything is stored",
] as const;

/** Loads the settings of a command and writes their warnings to stderr. */
export function loadSettingsAndWarn(command: Command, context: CommandContext): LoadedSettings {
  const loaded = loadSettingsFromFlags(command, context);
  for (const { message, remedy } of loaded.warnings)
    context.stderr.write(`mds-sync: warning: ${message}: ${remedy}\n`);
  return loaded;
}

/** Also creates the logger for `--log-level`. Beside progress bars it writes warnings only. */
export function loadWithLog(command: Command, context: CommandContext) {
  const loaded = loadSettingsAndWarn(command, context);
  const flags = command.opts<CommonFlags>();
  const level = flags.logLevel ?? (hasBars(flags, context) ? "warn" : "info");
  return { loaded, log: createCommandLogger(level, context.stderr) };
}

/** Loads the settings; the caller handles the warnings. */
export function loadSettingsFromFlags(command: Command, context: CommandContext): LoadedSettings {
  const given = command.opts<Record<string, string | undefined>>();
  const flags = optionEntries.map(({ path, option }) => [
    path,
    option.flag && given[new Option(option.flag).attributeName()],
  ]);
  const { env, directory } = context;
  const loaded = loadSettings({ env, directory, file: given.config, flags: Object.fromEntries(flags) });
  // This must run once the path is known and before anything opens the warehouse.
  ensureTempFolder(loaded.settings.warehouse.path, env);
  return loaded;
}
