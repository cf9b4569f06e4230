import { existsSync } from "node:fs";
import type { Command } from "commander";
import { suggestWord } from "../../model/did-you-mean.ts";
import { type CommandContext, usageFailure } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../support/flags.ts";

export function addCompletionCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("completion")
    .description(
      "Writes the completion script of a shell to stdout. Besides commands and options it completes the names of the series in " +
        "the warehouse, which `mds-sync completion series` lists.",
    )
    .argument("<shell>", "bash, zsh or fish");
  addSettingsFlags(command, "warehouse").action(async (shell: string) => {
    if (shell === "series") {
      context.stdout.write(await listSeries(loadSettingsAndWarn(command, context).settings.warehouse.path));
      return;
    }
    const { COMPLETION_SHELLS, completionScripts } = await import("../output/completion-scripts.ts");
    const { describeCommands } = await import("../output/command-table.ts");
    const known = COMPLETION_SHELLS.find((name) => name === shell);
    if (!known) {
      const remedy = suggestWord(shell, COMPLETION_SHELLS, "give bash, zsh or fish");
      throw usageFailure(`there is no completion for ${shell}`, remedy);
    }
    context.stdout.write(completionScripts[known](describeCommands(program)));
  });
}

/** One name per line; nothing without a warehouse, since a script asks. */
async function listSeries(path: string): Promise<string> {
  if (!existsSync(path)) return "";
  const { withReader } = await import("../../warehouse/reader.ts");
  const { readSeries } = await import("../../library/reading/series-names.ts");
  const names = withReader(path, (connection) => readSeries(connection).map(({ name }) => `${name}\n`));
  return [...new Set(names)].join("");
}
