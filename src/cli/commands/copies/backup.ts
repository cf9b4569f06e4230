import { resolve } from "node:path";
import type { Command } from "commander";
import { deserialiseFailure, Failure } from "../../../model/failure.ts";
import { resolveSiblingModule, runChildProcess } from "../../../runtime/child-process.ts";
import { removePartialCopyOf } from "../../../warehouse/backup.ts";
import { formatBytes } from "../../output/text.ts";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../../support/flags.ts";
import type { BackupProcessReport } from "./backup-process.ts";

interface BackupFlags {
  force?: boolean;
  json?: boolean;
}

export function addBackupCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("backup").argument("<file>", "the copy to write"), "warehouse")
    .description(
      "Copies a consistent state of the warehouse, even while a daemon writes to it. Checks the copy before it renames it to " +
        "FILE. A daemon that starts with an old copy syncs what is missing.",
    )
    .option("--force", "replace an existing file")
    .option("--json", "one JSON object: warehouse, file, bytes, seconds")
    .action(async (given: string, flags: BackupFlags, command: Command) => {
      const warehouse = resolve(
        context.directory,
        loadSettingsAndWarn(command, context).settings.warehouse.path,
      );
      const file = resolve(context.directory, given);
      const startedAt = context.clock.monotonic();
      const bytes = await copyInProcess(warehouse, file, flags.force ?? false, context.stopping);
      const seconds = Math.round(context.clock.monotonic() - startedAt) / 1000;
      if (flags.json) context.stdout.write(`${JSON.stringify({ warehouse, file, bytes, seconds })}\n`);
      context.stderr.write(
        `${warehouse} is copied to ${file}: ${formatBytes(bytes)} in ${seconds.toFixed(1)} s\n`,
      );
    });
}

async function copyInProcess(
  warehouse: string,
  file: string,
  force: boolean,
  stopping: AbortSignal,
): Promise<number> {
  const { message: report, pid } = await runChildProcess<BackupProcessReport>(
    resolveSiblingModule("./backup-process", import.meta.url),
    [warehouse, file, ...(force ? ["force"] : [])],
    { signal: stopping },
  );
  if (report === undefined) {
    if (pid !== undefined) removePartialCopyOf(file, pid);
    throw new Failure(`the copy to ${file} was stopped before it was complete`, {
      family: "retry",
      code: "stopped",
      remedy: "start it again",
    });
  }
  if ("failure" in report) throw deserialiseFailure(report.failure);
  return report.bytes;
}
