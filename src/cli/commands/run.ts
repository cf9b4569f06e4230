import type { Command } from "commander";
import { runDaemon } from "../../daemon/daemon.ts";
import { packageFolder } from "../../runtime/child-process.ts";
import { showProgress } from "../output/progress-bar.ts";
import { formatNumber } from "../output/text.ts";
import { type CommandContext, type CommonFlags, programVersion } from "../support/context.ts";
import {
  ADOPT_OPTION,
  addSettingsFlags,
  createCommandLogger,
  loadSettingsAndWarn,
  logLevelOption,
} from "../support/flags.ts";
import { toSyncSettings } from "../support/session.ts";
import { type DemoFlags, DemoScreen, programIn, startDemo } from "./demo.ts";

interface RunFlags extends CommonFlags, DemoFlags {
  readonly demo?: boolean;
}

export function addRunCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("run"))
    .description(
      "Opens the warehouse, refreshes the lookups, fills every gap, follows the live feed, polls the snapshot streams, and " +
        "serves a dashboard on http.host:http.port. Stops cleanly on SIGTERM or Ctrl-C; a second signal stops it at once.",
    )
    .option("--demo", "no credentials needed: runs against the built-in simulator, into data/demo.sqlite")
    .option(...ADOPT_OPTION)
    .option("--no-progress", "show no progress bars and log no progress")
    .option(...logLevelOption())
    .action(async (flags: RunFlags, command: Command) => {
      const { clock, stderr, stopping } = context;
      const writeLine = (line: string) => void stderr.write(`${line}\n`);
      const demo = flags.demo ? await startDemo(flags, context.env) : undefined;
      try {
        const loaded = demo?.loaded ?? loadSettingsAndWarn(command, context);
        const { path } = loaded.settings.warehouse;
        const startedAt = clock.monotonic();
        const program = programIn(packageFolder);
        const screen = demo ? new DemoScreen({ path, clock, stderr, program }) : undefined;
        screen?.showIntroduction(demo?.takenPort);
        stopping.addEventListener("abort", () => screen?.end());
        const isClean = await runDaemon({
          loaded,
          settings: toSyncSettings(loaded),
          version: programVersion(),
          clock,
          log: createCommandLogger(flags.logLevel ?? (demo ? "error" : "info"), stderr),
          stopping,
          mayAdopt: flags.adopt ?? false,
          onServing: (address) =>
            screen ? screen.showAddresses(address) : writeLine(`dashboard: ${address}`),
          ...(flags.progress ? { startProgress: (syncContext) => showProgress(syncContext, stderr) } : {}),
          onFilled(rows) {
            const seconds = ((clock.monotonic() - startedAt) / 1000).toFixed(0);
            writeLine(`filled: ${formatNumber(rows)} rows in ${seconds} s; now following live`);
            screen?.showExampleQueries();
          },
          ...(screen ? { onLiveRows: (rows) => screen.showLiveTicks(rows) } : {}),
        });
        screen?.end();
        writeLine(
          isClean ? "stopped cleanly" : "stopped, but not cleanly: the next start checks the warehouse",
        );
      } finally {
        await demo?.stop();
      }
    });
}
