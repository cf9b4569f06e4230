import { resolve } from "node:path";
import type { Command } from "commander";
import { Failure } from "../../../model/failure.ts";
import { MICROS_PER_MS } from "../../../model/time.ts";
import { resolveSiblingModule, runChildProcess } from "../../../runtime/child-process.ts";
import { removePartialCopyOf } from "../../../warehouse/backup.ts";
import { restoreWarehouse } from "../../../warehouse/restore.ts";
import { formatBytes } from "../../output/text.ts";
import type { CommandContext, CommonFlags } from "../../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../../support/flags.ts";

export function addBackupCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("backup").argument("<file>", "the copy to write"), "warehouse")
    .description(
      "Copies a consistent state of the warehouse, even while a daemon writes to it. Checks the copy before it renames it to " +
        "FILE. A daemon that starts with an old copy syncs what is missing.",
    )
    .option("--force", "replace an existing file")
    .option("--json", "one JSON object: warehouse, file, bytes, seconds")
    .action(async (given: string, flags: CommonFlags & { readonly force?: boolean }, command: Command) => {
      const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
      const warehouse = resolve(context.directory, path);
      const file = resolve(context.directory, given);
      const startedAt = context.clock.monotonic();
      const { result: bytes, pid } = await runChildProcess<number>(
        resolveSiblingModule("./backup-process", import.meta.url),
        [warehouse, file, ...(flags.force ? ["force"] : [])],
        { signal: context.stopping },
      );
      if (bytes === undefined) {
        if (pid !== undefined) removePartialCopyOf(file, pid);
        throw new Failure(`the copy to ${file} was stopped before it was complete`, {
          family: "retry",
          code: "stopped",
          remedy: "start it again",
        });
      }
      const seconds = Math.round(context.clock.monotonic() - startedAt) / 1000;
      if (flags.json) context.stdout.write(`${JSON.stringify({ warehouse, file, bytes, seconds })}\n`);
      context.stderr.write(
        `${warehouse} is copied to ${file}: ${formatBytes(bytes)} in ${seconds.toFixed(1)} s\n`,
      );
    });
}

export function addRestoreCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(
    program.command("restore").argument("<file>", "the copy, as `mds-sync backup` made it"),
    "warehouse",
  )
    .description(
      "Checks the copy, upgrades it if it is of an older version, and puts it in the place of the warehouse. The earlier " +
        "warehouse gets a dated name beside it. No daemon may run meanwhile (exit 75). The next run syncs what is missing. " +
        "FILE itself stays as it is.",
    )
    .option("--json", "one JSON object: warehouse, file, bytes, set_aside, seconds")
    .action((given: string, flags: CommonFlags, command: Command) => {
      const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
      const file = resolve(context.directory, given);
      const startedAt = context.clock.monotonic();
      // SQLite cannot be interrupted while it copies; a killed restore leaves the earlier warehouse in place.
      context.dieOnSignal?.();
      const now = Math.floor(context.clock.now()) * MICROS_PER_MS;
      const result = restoreWarehouse(file, resolve(context.directory, path), now);
      const { warehouse, bytes, setAside } = result;
      const seconds = Math.round(context.clock.monotonic() - startedAt) / 1000;
      if (flags.json)
        context.stdout.write(`${JSON.stringify({ warehouse, file, bytes, set_aside: setAside, seconds })}\n`);
      const earlier = setAside === null ? "" : `; the earlier one is now ${setAside}`;
      context.stderr.write(
        `${warehouse} is restored from ${file}: ${formatBytes(bytes)} in ${seconds.toFixed(1)} s${earlier}\n`,
      );
    });
}
