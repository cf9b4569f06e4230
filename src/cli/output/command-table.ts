import type { Command, Option } from "commander";
import { SETTINGS_HEADING } from "../support/context.ts";

/** An option of a command, as completion and docs/commands.md show it. */
export interface OptionDoc {
  /** `-h, --help` or `--every <length>`. */
  readonly flags: string;
  readonly long: string;
  /** What stands for its value: `file`, `time` …; undefined if it takes none. */
  readonly value: string | undefined;
  readonly help: string;
  /** A flag of the option table: the settings file can have it too. */
  readonly isSetting: boolean;
}

/** A command, as completion and docs/commands.md show it. */
export interface CommandDoc {
  readonly name: string;
  readonly usage: string;
  readonly summary: string;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly help: string }[];
  /** The options that its help shows. */
  readonly options: readonly OptionDoc[];
}

/** Every command of a program in which all are loaded. */
export function describeCommands(program: Command): CommandDoc[] {
  const help = program.createHelp();
  return program.commands.map((command) => ({
    name: command.name(),
    usage: `${program.name()} ${command.name()} ${command.usage()}`,
    summary: command.summary(),
    description: command.description(),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      help: argument.description,
    })),
    options: help.visibleOptions(command).map(describeOption),
  }));
}

function describeOption(option: Option): OptionDoc {
  const { flags, long, description, helpGroupHeading } = option;
  return {
    flags,
    long: long ?? flags,
    value: /[<[]([^>\]]+)[>\]]/.exec(flags)?.[1],
    help: description,
    isSetting: helpGroupHeading === SETTINGS_HEADING,
  };
}
