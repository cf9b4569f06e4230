import { Command, CommanderError } from "commander";
import { type ExitCode, exitCode, Failure } from "../model/failure.ts";
import { systemClock } from "../runtime/clock.ts";
import { addBackfillCommand } from "./backfill-command.ts";
import { addBackupCommand } from "./backup-command.ts";
import type { CommandContext } from "./command-context.ts";
import { addDoctorCommand } from "./doctor-command.ts";
import { addExportCommand } from "./export-command.ts";
import { addGapsCommand } from "./gaps-command.ts";
import { addInitCommand } from "./init-command.ts";
import { addPlanCommand } from "./plan-command.ts";
import { programVersion } from "./program-version.ts";
import { addQueryCommand } from "./query-command.ts";
import { addRunCommand } from "./run-command.ts";
import { addSettingsCommand } from "./settings-command.ts";
import { addSimulateCommand } from "./simulate-command.ts";
import { addStatusCommand } from "./status-command.ts";
import { addVerifyCommand } from "./verify-command.ts";

/** Runs the program and tells how it ended. Every failure is one line on stderr, with its remedy. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  const stop = new AbortController();
  // A reader that went away (`| head`) is no failure of ours.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCode.ok);
    throw error;
  });
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
    stdout: process.stdout,
    stderr: process.stderr,
    stopping: stop.signal,
    dieOnSignal: () => {
      for (const signal of signals) process.removeAllListeners(signal);
    },
  };
  return runProgram(args, context);
}

/** The same in a world of the caller's. */
export async function runProgram(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  try {
    await buildProgram(context).parseAsync(args, { from: "user" });
    return exitCode.ok;
  } catch (error) {
    return report(error, context);
  }
}

export function buildProgram(context: CommandContext): Command {
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
  addRunCommand(program, context);
  addInitCommand(program, context);
  addPlanCommand(program, context);
  addBackfillCommand(program, context);
  addStatusCommand(program, context);
  addGapsCommand(program, context);
  addVerifyCommand(program, context);
  addQueryCommand(program, context);
  addExportCommand(program, context);
  addBackupCommand(program, context);
  addDoctorCommand(program, context);
  addSettingsCommand(program, context);
  addSimulateCommand(program, context);
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
  if (error instanceof Failure) {
    if (error.exit !== exitCode.ok) context.stderr.write(`mds-sync: ${error.line}\n`);
    return error.exit;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  context.stderr.write(`mds-sync: unexpected failure, please report it: ${text}\n`);
  return exitCode.unexpected;
}
