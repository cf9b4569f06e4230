import { resolve } from "node:path";
import type { Command } from "commander";
import { findSharedSettings } from "../../config/load-settings.ts";
import type { Settings } from "../../config/option-table.ts";
import type { StatusReport } from "../../model/status/warehouse-status.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeouts.ts";
import { readStatus } from "../../warehouse/read/status.ts";
import { withReader } from "../../warehouse/reader.ts";
import { readClockSkew } from "../../warehouse/tables/warehouse-state.ts";
import { formatStatus } from "../output/status-report.ts";
import { type CommandContext, type CommonFlags, isTerminal } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn, toConfirmationRules } from "../support/flags.ts";

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

/** A daemon that needs longer to read its warehouse counts as absent. */
const DAEMON_TIMEOUT_MS = 2_000;
const anyAddress: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** What a running daemon adds to the status of its warehouse; null without one. */
type RunningDaemonStatus = Required<Pick<StatusReport, "service" | "problem" | "shared">>;

const noDaemon: RunningDaemonStatus = { service: null, problem: null, shared: null };

/** Requests the state of the daemon of this warehouse, if one runs at the configured port. */
async function askRunningDaemon(
  clock: Clock,
  http: Settings["http"],
  warehousePath: string,
): Promise<RunningDaemonStatus> {
  if (http.port === 0) return noDaemon;
  const host = anyAddress.has(http.host) ? "127.0.0.1" : http.host;
  const address = `http://${host.includes(":") ? `[${host}]` : host}:${http.port}/api/status`;
  const read = async (signal: AbortSignal) => {
    const response = await fetch(address, { signal });
    return response.ok ? ((await response.json()) as Partial<StatusReport>) : undefined;
  };
  const limits = { clock, ms: DAEMON_TIMEOUT_MS, stopping: new AbortController().signal };
  const status = await withTimeout(limits, read).catch(() => undefined);
  // Another daemon may have taken the port.
  if (!status || resolve(status.warehouse ?? "") !== resolve(warehousePath)) return noDaemon;
  // A daemon of an older version does not report all of it.
  const service = status.service
    ? { ...{ throttled: false, recent_failures: {}, limit: null, limit_since: null }, ...status.service }
    : null;
  return { service, problem: status.problem ?? null, shared: status.shared ?? null };
}
