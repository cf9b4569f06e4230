import { Command, CommanderError } from "commander";
import { type ExitCode, exitCode, Failure } from "../model/failure.ts";
import { systemClock } from "../runtime/clock.ts";
import { BoundedTalk } from "../telemetry/nonblocking-stderr.ts";
import type { CommandContext } from "./support/context.ts";
import { programVersion } from "./support/context.ts";

/** Whatever could not be opened for it, and whatever remedy that has otherwise. */
const OUT_OF_FILES = /\b(EMFILE|ENFILE)\b|too many open files/i;

/** How long the end waits for a reader of stderr who has fallen behind. */
const LAST_WORDS_MS = 500;

type AddCommand = (program: Command, context: CommandContext) => void;

/** In the order of the help. Each is loaded when it is wanted: `--version` need not wait for a database to load. */
const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  run: async () => (await import("./commands/run.ts")).addRunCommand,
  init: async () => (await import("./commands/init.ts")).addInitCommand,
  plan: async () => (await import("./commands/plan.ts")).addPlanCommand,
  backfill: async () => (await import("./commands/backfill.ts")).addBackfillCommand,
  status: async () => (await import("./commands/status.ts")).addStatusCommand,
  gaps: async () => (await import("./commands/gaps.ts")).addGapsCommand,
  verify: async () => (await import("./commands/verify.ts")).addVerifyCommand,
  query: async () => (await import("./commands/query.ts")).addQueryCommand,
  export: async () => (await import("./commands/export.ts")).addExportCommand,
  backup: async () => (await import("./commands/backup.ts")).addBackupCommand,
  doctor: async () => (await import("./commands/doctor/doctor.ts")).addDoctorCommand,
  settings: async () => (await import("./commands/settings.ts")).addSettingsCommand,
  simulate: async () => (await import("./commands/simulate.ts")).addSimulateCommand,
};

/** The one that is named; all of them for the help, and to find what a misspelt one may have meant. */
function commandsFor(named: string | undefined): readonly (() => Promise<AddCommand>)[] {
  if (named === "-V" || named === "--version") return [];
  const command = named !== undefined && Object.hasOwn(commands, named) ? commands[named] : undefined;
  return command ? [command] : Object.values(commands);
}

/** Runs the program and tells how it ended. Every failure is one line on stderr, with its remedy. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  const stop = new AbortController();
  // A reader that went away (`| head`) is no failure of ours.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCode.ok);
    throw error;
  });
  const stderr = new BoundedTalk(process.stderr);
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(exitCode.unexpected);
      stop.abort(
        new Failure(`stopped by ${signal}`, { family: "operator", code: "stopped", exit: exitCode.ok }),
      );
    });
  }
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
      for (const signal of signals) process.removeAllListeners(signal);
    },
  };
  const code = await runProgram(args, context);
  if (await stderr.flushed(systemClock, LAST_WORDS_MS)) return code;
  // What waits for a reader of stderr who is stuck would keep the process for ever; data is still waited for.
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  process.exit(code);
}

/** The same in a world of the caller's. */
export async function runProgram(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  try {
    const program = await buildProgram(args, context);
    await program.parseAsync(args, { from: "user" });
    return exitCode.ok;
  } catch (error) {
    return report(error, context);
  }
}

async function buildProgram(args: readonly string[], context: CommandContext): Promise<Command> {
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
    .addHelpText("after", "\nmds-sync COMMAND --help tells more about one command.");
  for (const add of await Promise.all(commandsFor(args[0]).map((load) => load()))) add(program, context);
  return program;
}

function report(error: unknown, context: CommandContext): ExitCode {
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
  if (error instanceof Error && OUT_OF_FILES.test(error.message)) {
    context.stderr.write(
      `mds-sync: ${error.message}: raise the limit of open files (LimitNOFILE, ulimit -n)\n`,
    );
    return exitCode.unexpected;
  }
  if (error instanceof Failure) {
    if (error.exit !== exitCode.ok) context.stderr.write(`mds-sync: ${error.line}\n`);
    return error.exit;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  context.stderr.write(`mds-sync: unexpected failure, please report it: ${text}\n`);
  return exitCode.unexpected;
}
