import type { Command } from "commander";
import { optionEntries } from "../../config/option-table.ts";
import { textTable } from "../output/text.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, settingsFor } from "../support/flags.ts";

export function addSettingsCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("settings"))
    .summary("show every setting, its value, and where the value comes from")
    .description(
      "Shows every setting as it is in force: the settings file, overridden by the environment, overridden by flags. " +
        "The client secret itself is never shown. Exits 2 when a setting is wrong, so it also checks a file before a restart.",
    )
    .option("--json", "one JSON object: settings, origins, file")
    .action((options: { json?: boolean }, command: Command) => {
      const loaded = settingsFor(command, context);
      if (options.json) {
        const { settings, file = null } = loaded;
        const shown = {
          settings,
          origins: Object.fromEntries(loaded.origins),
          secret: loaded.secret.origin,
          file,
        };
        context.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
        return;
      }
      const lines = [...loaded.origins].map(([setting, origin]) => lineOf(setting, origin, loaded.settings));
      lines.push(["(client secret)", "never shown", loaded.secret.origin]);
      context.stdout.write(`${textTable(lines, ["left", "left", "left"])}\n`);
      context.stderr.write(
        loaded.file ? `read from ${loaded.file}\n` : "no settings file: built-in defaults\n",
      );
    });
}

function lineOf(setting: string, origin: string, settings: object): string[] {
  const value = setting
    .split(".")
    .reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], settings);
  const option = optionEntries.find(({ path }) => path === setting)?.option;
  return [setting, (option ? option.write(value) : String(value)) || "-", origin];
}
