import { resolve } from "node:path";
import type { Command } from "commander";
import { Failure, receiveFailure } from "../../model/failure.ts";
import { ownFile, runHelper } from "../../runtime/child-process.ts";
import { removeUnfinishedOf } from "../../warehouse/backup.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, settingsFor } from "../support/flags.ts";
import type { BackUpReport } from "./backup-process.ts";

interface Flags {
  force?: boolean;
  json?: boolean;
}

export function addBackupCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("backup").argument("<file>", "the copy to write"))
    .summary("copy the warehouse, while the daemon writes")
    .description(
      "Copies the warehouse as it is at one moment, whether or not a daemon writes it. The copy is checked, and appears " +
        "under its name when it is whole. A daemon started on an old copy syncs what it lacks.",
    )
    .option("--force", "replace a copy that exists")
    .option("--json", "one JSON object: warehouse, file, bytes, seconds")
    .action(async (given: string, flags: Flags, command: Command) => {
      const warehouse = resolve(context.directory, settingsFor(command, context).settings.warehouse.path);
      const file = resolve(context.directory, given);
      const begun = context.clock.monotonic();
      const bytes = await copyInProcess(warehouse, file, flags.force ?? false, context.stopping);
      const seconds = Math.round(context.clock.monotonic() - begun) / 1000;
      if (flags.json) context.stdout.write(`${JSON.stringify({ warehouse, file, bytes, seconds })}\n`);
      const mebibytes = (bytes / 1024 / 1024).toFixed(1);
      context.stderr.write(
        `${warehouse} is copied to ${file}: ${mebibytes} MiB in ${seconds.toFixed(1)} s\n`,
      );
    });
}

async function copyInProcess(
  warehouse: string,
  file: string,
  force: boolean,
  stopping: AbortSignal,
): Promise<number> {
  const { report, pid } = await runHelper<BackUpReport>(
    ownFile("./backup-process", import.meta.url),
    [warehouse, file, ...(force ? ["force"] : [])],
    { stopping },
  );
  if (report === undefined) {
    if (pid !== undefined) removeUnfinishedOf(file, pid);
    throw new Failure(`the copy to ${file} was stopped before it was whole`, {
      family: "retry",
      code: "stopped",
      remedy: "start it again",
    });
  }
  if ("failure" in report) throw receiveFailure(report.failure);
  return report.bytes;
}
