import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { fileURLToPath } from "node:url";
import { Command, CommanderError } from "commander";
import { exitCode, Failure } from "../model/failure.ts";
import { systemClock } from "../runtime/clock.ts";
import { exitAfter } from "../runtime/timeouts.ts";
import { NonblockingStderr } from "../telemetry/nonblocking-stderr.ts";
import { NO_BREAK_SPACE, wrapText } from "./output/text.ts";
import { ChildExit, type CommandContext, programVersion, SETTINGS_HEADING } from "./support/context.ts";
import { commandExamples } from "./support/examples.ts";

/** Gets its own remedy, because the file in the message is not the cause. */
const OPEN_FILE_LIMIT_ERROR = /\b(EMFILE|ENFILE)\b|too many open files/i;

/** How long the exit waits for a slow reader of stderr. */
const STDERR_FLUSH_TIMEOUT_MS = 500;

/** How long open handles may delay the exit after a stop. */
const STOPPED_EXIT_DELAY_MS = 400;

type AddCommand = (program: Command, context: CommandContext) => void;

/** A command loads SQLite, and more, when it is loaded. */
const loaders: Readonly<Record<string, () => Promise<AddCommand>>> = {
  run: async () => (await import("./commands/run.ts")).addRunCommand,
  init: async () => (await import("./commands/init.ts")).addInitCommand,
  plan: async () => (await import("./commands/plan.ts")).addPlanCommand,
  backfill: async () => (await import("./commands/backfill.ts")).addBackfillCommand,
  status: async () => (await import("./commands/status.ts")).addStatusCommand,
  gaps: async () => (await import("./commands/gaps.ts")).addGapsCommand,
  verify: async () => (await import("./commands/verify.ts")).addVerifyCommand,
  bars: async () => (await import("./commands/data/bars.ts")).addBarsCommand,
  ticks: async () => (await import("./commands/data/ticks.ts")).addTicksCommand,
  asof: async () => (await import("./commands/data/asof.ts")).addAsofCommand,
  check: async () => (await import("./commands/data/check.ts")).addCheckCommand,
  query: async () => (await import("./commands/query.ts")).addQueryCommand,
  export: async () => (await import("./commands/export.ts")).addExportCommand,
  share: async () => (await import("./commands/share.ts")).addShareCommand,
  backup: async () => (await import("./commands/copies/backup.ts")).addBackupCommand,
  restore: async () => (await import("./commands/copies/backup.ts")).addRestoreCommand,
  serve: async () => (await import("./commands/serve.ts")).addServeCommand,
  doctor: async () => (await import("./commands/doctor/doctor.ts")).addDoctorCommand,
  settings: async () => (await import("./commands/settings.ts")).addSettingsCommand,
  simulate: async () => (await import("./commands/simulate.ts")).addSimulateCommand,
  completion: async () => (await import("./commands/completion.ts")).addCompletionCommand,
};

/** The list of commands in the help, which loads none of them: each with its arguments. */
const summaries = {
  run: "run the daemon: fill gaps, follow the live feed, serve the dashboard",
  init: "write a commented settings file and a systemd unit",
  plan: "estimate a backfill: series, gaps, requests, rows, disk, minutes",
  backfill: "fill every gap of what the settings select, then exit; for cron",
  status: "show coverage, gaps and freshness of each stream",
  gaps: "list every gap with its state, or check whether a range is complete",
  verify: "compare the warehouse with the service, and repair differences",
  "bars <series...>": "bars of any length, of one series or several side by side",
  "ticks <series...>": "the ticks of series, to the last digit",
  "asof <time> <series...>": "what each series was worth at or before a moment",
  "check <line...>": "recompute what --cite has cited, in any warehouse of the service",
  "query [sql]": "run read-only SQL over the warehouse, or list its relations",
  export: "write Parquet files, and a DuckDB file whose views read them",
  share: "forward to the shared warehouse (PostgreSQL) what it lacks",
  "backup <file>": "copy the warehouse, even while the daemon writes",
  "restore <file>": "put a copy in the place of the warehouse",
  serve: "serve the service's own API from the warehouse, live or as a replay",
  doctor: "check settings, credentials, network, scopes, clock, warehouse, disk",
  settings: "show every setting, its value, and where the value comes from",
  "simulate [-- command...]": "run the built-in simulator of the service, to try clients",
  "completion <shell>": "write a script that completes commands, options and names of series",
};

/** The commands that the arguments need: the named one, or all for a script that completes them. */
function loadersFor([name, ...rest]: readonly string[]) {
  // A shell runs `completion series` at each tab.
  if (name === "completion" && !rest.includes("series")) return Object.values(loaders);
  const load = name !== undefined && Object.hasOwn(loaders, name) ? loaders[name] : undefined;
  return load ? [load] : [];
}

/** Runs the program and returns its exit code. Every failure is one line on stderr, with its remedy; a daemon's is a log record. */
export async function main(args: readonly string[]): Promise<number> {
  // Before Node prints the trace of a crash.
  process.on("uncaughtExceptionMonitor", (error) => {
    if (error instanceof Error && error.stack !== undefined) error.stack = nameSources(error.stack);
  });
  const stop = new AbortController();
  // A reader that closed the pipe (`| head`) is not a failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCode.ok);
    throw error;
  });
  const stderr = new NonblockingStderr(process.stderr);
  const signals = ["SIGINT", "SIGTERM"] as const;
  const stopBy = (signal: NodeJS.Signals) => {
    if (stop.signal.aborted) process.exit(exitCode.unexpected);
    stop.abort(stoppedFailure(`stopped by ${signal}`));
  };
  for (const signal of signals) process.on(signal, stopBy);
  // The process that started this one with an IPC channel has ended, perhaps killed.
  process.once("disconnect", () => stop.abort(stoppedFailure("the parent process has ended")));
  process.channel?.unref();
  const context: CommandContext = {
    env: process.env,
    directory: process.cwd(),
    clock: systemClock,
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr,
    stopping: stop.signal,
    dieOnSignal: () => {
      for (const signal of signals) process.off(signal, stopBy);
    },
  };
  const code = await runProgram(args, context);
  // A step of the stop that hangs must not keep the process alive, and with it the writer lock.
  if (stop.signal.aborted || args[0] === "run") exitAfter(STOPPED_EXIT_DELAY_MS, code);
  if (await stderr.flush(systemClock, STDERR_FLUSH_TIMEOUT_MS)) return code;
  // A stuck reader of stderr would keep the process alive for ever. Data on stdout is still flushed.
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  process.exit(code);
}

const stoppedFailure = (why: string) => new Failure(why, { code: "stopped", exit: exitCode.ok });

/** Like `main`, but the caller passes the context (for tests). */
export async function runProgram(args: readonly string[], given: CommandContext): Promise<number> {
  const context = isDaemonLog(args, given) ? await recordMessages(given) : given;
  try {
    const program = await buildProgram(args, context);
    await program.parseAsync(args, { from: "user" });
    return exitCode.ok;
  } catch (error) {
    return report(error, context);
  }
}

/** The stderr of a daemon is its log: records only. Other commands, and people at a terminal, get plain lines. */
function isDaemonLog([name, ...rest]: readonly string[], { stderr }: CommandContext): boolean {
  if (stderr.isTTY === true) return false;
  return (
    (name === "run" && !rest.includes("--demo")) || (name === "serve" && !rest.includes("--hash-secret"))
  );
}

/** Leaves out `stdin`, which opens when it is read, and which no daemon reads. */
async function recordMessages(given: CommandContext): Promise<CommandContext> {
  const { recordPlainLines } = await import("../telemetry/logger.ts");
  const { env, directory, clock, stdout, stderr, stopping } = given;
  return { env, directory, clock, stdout, stopping, stderr: recordPlainLines(stderr) };
}

/** The program with the commands that the arguments need; the others have only what the list of commands shows. */
export async function buildProgram(args: readonly string[], context: CommandContext): Promise<Command> {
  const terms = new Map<string, string>();
  const program = new Command("mds-sync")
    .description("A market data service in your own database: complete, exact, and able to prove it.")
    .version(programVersion(), "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: () => {},
      getOutHelpWidth: () => 100,
    })
    .configureHelp({
      // The help of a command fits on a screen: that of `settings` alone describes the flags of all settings.
      groupItems(_all, visible, getGroup) {
        const groups = Map.groupBy(visible, getGroup);
        groups.delete(SETTINGS_HEADING);
        return groups;
      },
      subcommandTerm: (command) => terms.get(command.name()) ?? command.name(),
    })
    .addHelpText("after", "\nmds-sync COMMAND --help describes one command.");
  for (const add of await Promise.all(loadersFor(args).map((load) => load()))) add(program, context);
  for (const [term, summary] of Object.entries(summaries)) {
    const [name = ""] = term.split(" ");
    const command = program.commands.find((loaded) => loaded.name() === name) ?? program.command(name);
    command.summary(summary);
    terms.set(name, term);
  }
  for (const command of program.commands) {
    if (command.name() === "settings") command.configureHelp({});
    const examples = commandExamples[command.name()] ?? [];
    const more = [...listSettings(command), "", "Examples:", ...examples.map((line) => `  ${line}`)];
    if (examples.length > 0) command.addHelpText("after", more.join("\n"));
  }
  return program;
}

function listSettings(command: Command): string[] {
  if (command.name() === "settings") return [];
  const flags = command
    .createHelp()
    .visibleOptions(command)
    .filter(({ helpGroupHeading }) => helpGroupHeading === SETTINGS_HEADING)
    .map((option) => option.flags.replaceAll(" ", NO_BREAK_SPACE));
  if (flags.length === 0) return [];
  return ["", "Settings (see mds-sync settings --help):", wrapText(flags.join(", "), "  ")];
}

function report(error: unknown, context: CommandContext): number {
  if (error instanceof ChildExit) return error.status;
  if (error instanceof CommanderError) {
    // --help and --version arrive here too; their output is written already.
    if (error.exitCode === 0) return exitCode.ok;
    const message =
      error.code === "commander.help" ? "no command given" : error.message.replace(/^error: /, "");
    const [what = "", ...suggestion] = message.split("\n");
    const remedy =
      suggestion.join(" ").replace(/^\(Did you mean (.*)\?\)$/, "did you mean $1?") || "see mds-sync --help";
    context.stderr.write(`mds-sync: ${what.replace(/\.$/, "")}: ${remedy}\n`);
    return exitCode.usage;
  }
  if (error instanceof Error && OPEN_FILE_LIMIT_ERROR.test(error.message)) {
    context.stderr.write(
      `mds-sync: ${error.message}: raise the limit of open files (LimitNOFILE, ulimit -n)\n`,
    );
    return exitCode.unexpected;
  }
  if (error instanceof Failure) {
    if (error.exit !== exitCode.ok) context.stderr.write(`mds-sync: ${error.summary}\n`);
    return error.exit;
  }
  const text = error instanceof Error ? nameSources(error.stack ?? error.message) : String(error);
  context.stderr.write(`mds-sync: unexpected failure, please report it: ${text}\n`);
  return exitCode.unexpected;
}

/** A position in a built file, as a stack trace names it. */
const builtPosition = /(file:\/\/\/[^\s()]+\.js|\/[^\s():]+\.js):(\d+):(\d+)/g;

/**
 * Replaces the positions of a stack trace in built files by those in the sources. Reads the source maps when a trace is
 * printed, which is rare: Node's own support would read megabytes of them at each start.
 */
function nameSources(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(builtPosition, (position, file: string, line: string, column: string) => {
    const map = maps.has(file) ? maps.get(file) : readSourceMap(file);
    maps.set(file, map);
    const origin = map?.findOrigin(Number(line), Number(column));
    if (!origin || !("fileName" in origin)) return position;
    return `${origin.fileName.replace(/^(?:\.\.\/)+/, "")}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function readSourceMap(file: string): SourceMap | undefined {
  try {
    const path = file.startsWith("file:") ? fileURLToPath(file) : file;
    return new SourceMap(JSON.parse(readFileSync(`${path}.map`, "utf8")) as SourceMapPayload);
  } catch {
    return undefined;
  }
}
