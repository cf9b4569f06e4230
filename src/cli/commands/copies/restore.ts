import { resolve } from "node:path";
import type { Command } from "commander";
import { MICROS_PER_MS } from "../../../model/time.ts";
import { restoreWarehouse } from "../../../warehouse/restore.ts";
import { formatBytes } from "../../output/text.ts";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../../support/flags.ts";

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
    .action((given: string, flags: { json?: boolean }, command: Command) => {
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
