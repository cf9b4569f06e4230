import type { Command } from "commander";
import { runDaemon } from "../../daemon/daemon.ts";
import { showProgress } from "../output/progress-bar.ts";
import type { CommandContext } from "../support/context.ts";
import { programVersion } from "../support/context.ts";
import { addSettingsFlags, logLevelFlag, logLevelHelp, readLogger, settingsFor } from "../support/flags.ts";
import { syncSettings } from "../support/session.ts";
import { startDemo } from "./demo.ts";
import { DemoScreen } from "./demo-screen.ts";

interface Flags {
  demo?: boolean;
  progress: boolean;
  logLevel?: string;
  httpHost?: string;
  httpPort?: string;
  warehouse?: string;
}

export function addRunCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("run"))
    .summary("the daemon: fill, follow live, poll, heal, and serve the dashboard, until stopped")
    .description(
      "Opens the warehouse, looks up what there is, fills every hole, follows the live feed, polls the rest, and serves a " +
        "dashboard on http.host:http.port. Stops cleanly on SIGTERM or Ctrl-C; a second signal stops at once.",
    )
    .option("--demo", "no credentials needed: runs against the built-in simulator, into data/demo.sqlite")
    .option("--no-progress", "neither progress bars nor lines about progress")
    .option(logLevelFlag, logLevelHelp)
    .action(async (flags: Flags, command: Command) => {
      const { clock, stderr, stopping } = context;
      const say = (line: string) => void stderr.write(`${line}\n`);
      const demo = flags.demo ? await startDemo(flags, context.env) : undefined;
      try {
        const loaded = demo?.loaded ?? settingsFor(command, context);
        const { path } = loaded.settings.warehouse;
        const begun = clock.monotonic();
        const screen = demo ? new DemoScreen({ path, clock, stderr }) : undefined;
        screen?.greet();
        await runDaemon({
          loaded,
          settings: syncSettings(loaded),
          version: programVersion(),
          clock,
          log: readLogger(flags.logLevel ?? (demo ? "error" : "info"), stderr),
          stopping,
          serving: (address) => say(`dashboard: ${address}`),
          ...(flags.progress ? { progress: (intake) => showProgress(intake, stderr) } : {}),
          filled(rows) {
            const seconds = ((clock.monotonic() - begun) / 1000).toFixed(0);
            say(`filled: ${rows.toLocaleString("en-US")} rows in ${seconds} s; now following live`);
            screen?.invite();
          },
          ...(screen ? { live: (ticks) => screen.live(ticks) } : {}),
        });
        screen?.end();
        say("stopped cleanly");
      } finally {
        await demo?.stop();
      }
    });
}
