import type { Command } from "commander";
import { findSharedSettings } from "../../config/service-settings.ts";
import type { StatusReport } from "../../model/status/warehouse-status.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { readStatus } from "../../warehouse/read/status.ts";
import { withReader } from "../../warehouse/reader.ts";
import { readClockSkew } from "../../warehouse/tables/warehouse-state.ts";
import { formatStatus } from "../output/status-report.ts";
import { type CommandContext, type CommonFlags, isTerminal } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn, toConfirmationRules } from "../support/flags.ts";
import { askRunningDaemon } from "../support/running-daemon.ts";

const WATCH_INTERVAL_MS = 2_000;

export function addStatusCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("status"), "warehouse", "http")
    .description(
      "Shows for each stream the covered range, the number of rows, open, unconfirmed and lost ranges, the age of the newest row, the " +
        "last error and missing scopes; of a running daemon, also its health, how the service limits it and how far the shared warehouse is behind. Works with and without one. " +
        "Exits 0 whatever the status is; 4 if there is no warehouse yet.",
    )
    .option(
      "--json",
      "one JSON object: generated_at, warehouse, streams, confirmations, disk, jobs, last_crash, service, problem, shared; with --watch one per line",
    )
    .option("--watch", "refresh every two seconds, in place, until Ctrl-C")
    .action(async (flags: CommonFlags & { readonly watch?: boolean }, command: Command) => {
      const { clock, stdout, stopping } = context;
      const loaded = loadSettingsAndWarn(command, context);
      const { settings } = loaded;
      // Ages are by the service's clock: docs/decisions/service-clock.md.
      const { http, warehouse } = settings;
      const read = async (): Promise<StatusReport> => {
        const status = withReader(warehouse.path, (connection) =>
          readStatus(
            connection,
            Math.round(clock.now() * MICROS_PER_MS) + readClockSkew(connection),
            toConfirmationRules(settings),
          ),
        );
        const daemon = await askRunningDaemon(clock, http, status.warehouse);
        const shared = daemon.shared ? undefined : findSharedSettings(loaded);
        if (!shared) return { ...status, ...daemon };
        // Without a shared warehouse nobody loads the PostgreSQL client.
        const { readShareStatus } = await import("../../share/server/read-share-status.ts");
        const options = { ...shared, warehouse: status.warehouse, clock };
        return { ...status, ...daemon, shared: await readShareStatus(options) };
      };
      if (!flags.watch) {
        const status = await read();
        stdout.write(`${flags.json ? JSON.stringify(status, null, 2) : formatStatus(status)}\n`);
        return;
      }
      const show = flags.json
        ? (status: StatusReport) => void stdout.write(`${JSON.stringify(status)}\n`)
        : showInPlace(stdout, formatStatus);
      while (!stopping.aborted) {
        show(await read());
        await clock.sleep(WATCH_INTERVAL_MS, stopping).catch(() => {});
      }
    });
}

/** On a terminal each status replaces the one before; elsewhere it is appended. */
function showInPlace(stdout: NodeJS.WritableStream, text: (status: StatusReport) => string) {
  if (!isTerminal(stdout)) return (status: StatusReport) => void stdout.write(`${text(status)}\n\n`);
  const rows = (stdout as NodeJS.WriteStream).rows ?? 24;
  let linesShown = 0;
  return (status: StatusReport) => {
    // Lines that have scrolled away cannot be redrawn; the last line stays free for the cursor.
    const lines = text(status)
      .split("\n")
      .slice(0, rows - 1);
    const up = linesShown > 0 ? `\u001b[${linesShown}A` : "";
    stdout.write(`${up}\r\u001b[J${lines.join("\n")}\n`);
    linesShown = lines.length;
  };
}
