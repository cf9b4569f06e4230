import type { Command } from "commander";
import { settingAt } from "../../config/load-settings.ts";
import { optionEntries } from "../../config/option-table.ts";
import { formatTable } from "../output/text.ts";
import type { CommandContext, CommonFlags } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../support/flags.ts";

export function addSettingsCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("settings"))
    .description(
      "Shows the effective value of every setting: flags override the environment, which overrides the settings file. " +
        "The client secret is never shown. Exits 2 if a setting is wrong, so it can check a file before a restart.",
    )
    .option("--json", "one JSON object: settings, origins, file")
    .action((flags: CommonFlags, command: Command) => {
      const loaded = loadSettingsAndWarn(command, context);
      if (flags.json) {
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
      const lines = [...loaded.origins].map(([setting, origin]) => {
        const value = settingAt(loaded.settings, setting);
        const option = optionEntries.find(({ path }) => path === setting)?.option;
        return [setting, (option ? option.format(value) : String(value)) || "-", origin];
      });
      lines.push(["(client secret)", "never shown", loaded.secret.origin]);
      lines.push(["(shared password)", "never shown", loaded.sharedPassword.origin]);
      context.stdout.write(`${formatTable(lines, ["left", "left", "left"])}\n`);
      context.stderr.write(
        loaded.file ? `read from ${loaded.file}\n` : "no settings file: built-in defaults\n",
      );
    });
}
