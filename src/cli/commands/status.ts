import type { Command } from "commander";
import { MICROS_PER_MS } from "../../model/time.ts";
import type { WarehouseStatus } from "../../warehouse/read/status.ts";
import { isTerminal } from "../output/progress-bar.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, settingsFor } from "../support/flags.ts";

interface Flags {
  json?: boolean;
  watch?: boolean;
}

const WATCH_EVERY_MS = 2_000;

export function addStatusCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("status"))
    .summary("show per stream what is covered, what is missing, and how fresh it is")
    .description(
      "Shows for each stream what is covered, how many rows there are, the ranges still open, the ranges lost, the age of " +
        "the newest row, the last error and the scopes that are missing. Works whether or not a daemon runs. " +
        "Exits 0 when it could tell, whatever it told; 4 when there is no warehouse yet.",
    )
    .option(
      "--json",
      "one JSON object: generated_at, warehouse, streams, disk, jobs, last_crash; with --watch one a line",
    )
    .option("--watch", "again every two seconds, in place, until Ctrl-C")
    .action(async (flags: Flags, command: Command) => {
      const { clock, stdout, stopping } = context;
      const { settings } = settingsFor(command, context);
      // Loaded when it runs: no other command waits for SQLite.
      const { lookOn } = await import("../../warehouse/reader.ts");
      const { readStatus } = await import("../../warehouse/read/status.ts");
      const { statusReport } = await import("../output/status-report.ts");
      const { readClockSkew } = await import("../../warehouse/coverage/targets.ts");
      // Ages are by the service's clock, as everything in the warehouse is: this machine's may be set to anything.
      const look = () =>
        lookOn(settings.warehouse.path, (connection) =>
          readStatus(connection, Math.round(clock.now() * MICROS_PER_MS) + readClockSkew(connection)),
        );
      if (!flags.watch) {
        const status = look();
        stdout.write(`${flags.json ? JSON.stringify(status, null, 2) : statusReport(status)}\n`);
        return;
      }
      const show = flags.json ? jsonLines(stdout) : inPlace(stdout, statusReport);
      while (!stopping.aborted) {
        show(look());
        await clock.sleep(WATCH_EVERY_MS, stopping).catch(() => {});
      }
    });
}

type Show = (status: WarehouseStatus) => void;

function jsonLines(stdout: NodeJS.WritableStream): Show {
  return (status) => void stdout.write(`${JSON.stringify(status)}\n`);
}

/** Over what was shown before, on a terminal; elsewhere one after the other. */
function inPlace(stdout: NodeJS.WritableStream, text: (status: WarehouseStatus) => string): Show {
  if (!isTerminal(stdout)) return (status) => void stdout.write(`${text(status)}\n\n`);
  const rows = (stdout as NodeJS.WriteStream).rows ?? 24;
  let shown = 0;
  return (status) => {
    // What has scrolled away cannot be drawn over: the last line stays free for the cursor.
    const lines = text(status)
      .split("\n")
      .slice(0, rows - 1);
    const up = shown > 0 ? `\u001b[${shown}A` : "";
    stdout.write(`${up}\r\u001b[J${lines.join("\n")}\n`);
    shown = lines.length;
  };
}
