import type { Command } from "commander";
import { runDaemon } from "../daemon.ts";
import type { CommandContext } from "./command-context.ts";
import { startDemo } from "./demo.ts";
import { logLevelFlag, logLevelHelp, readLogger } from "./log-flag.ts";
import { programVersion } from "./program-version.ts";
import { showProgress } from "./progress.ts";
import { addSettingsFlags, settingsFor } from "./settings-flags.ts";
import { syncSettings } from "./sync-session.ts";

interface Flags {
  demo?: boolean;
  progress: boolean;
  logLevel?: string;
  httpHost?: string;
  httpPort?: string;
  warehouse?: string;
}

const LIVE_LINE_MS = 10_000;

export function addRunCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("run"))
    .summary("the daemon: fill, follow live, poll, heal, and serve the dashboard, until stopped")
    .description(
      "Opens the warehouse, looks up what there is, fills every hole, follows the live feed, polls the rest, and serves a\n" +
        "dashboard on http.host:http.port. Stops cleanly on SIGTERM or Ctrl-C; a second signal stops at once.",
    )
    .option("--demo", "no credentials needed: runs against the built-in simulator, into data/demo.sqlite")
    .option("--no-progress", "neither progress bars nor lines about progress")
    .option(logLevelFlag, logLevelHelp)
    .action(async (flags: Flags, command: Command) => {
      const { clock, stderr, stopping } = context;
      const say = (line: string) => void stderr.write(`${line}\n`);
      const demo = flags.demo ? await startDemo(flags) : undefined;
      if (demo) say("demo: the built-in simulator stands in for the service; nothing leaves this machine");
      try {
        const loaded = demo?.loaded ?? settingsFor(command, context);
        const { path } = loaded.settings.warehouse;
        const begun = clock.monotonic();
        const live = liveLines(clock, say);
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
            if (demo) for (const line of invitations(path)) say(line);
          },
          ...(demo ? { live } : {}),
        });
        say("stopped cleanly");
      } finally {
        await demo?.stop();
      }
    });
}

/** At most one line in a while, so that a person sees ticks arrive without being drowned in them. */
function liveLines(clock: CommandContext["clock"], say: (line: string) => void): (ticks: number) => void {
  let ticks = 0;
  let shownAt = Number.NEGATIVE_INFINITY;
  return (more) => {
    ticks += more;
    if (ticks === 0 || clock.monotonic() - shownAt < LIVE_LINE_MS) return;
    shownAt = clock.monotonic();
    say(`live: ${ticks} new ticks on disk`);
    ticks = 0;
  };
}

function invitations(path: string): string[] {
  const query = (sql: string) => `  npx mds-sync query --warehouse ${path} "${sql}"`;
  return [
    "try, in another terminal:",
    query("SELECT name, time, price_exact FROM latest_index_ticks"),
    query("SELECT day, open, high, low, close FROM ohlcv WHERE name = 'BTC' ORDER BY day DESC LIMIT 5"),
    query("SELECT stream, name, from_time, to_time, proof FROM coverage LIMIT 10"),
  ];
}
