import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Command } from "commander";
import { integer, option } from "../../config/option-types.ts";
import { errorCode, failureCode, usageFailure } from "../../model/failure.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { ChildExit, type CommandContext } from "../support/context.ts";
import { readChoice, readFlag } from "../support/flags.ts";

type SimulateFlags = Readonly<Record<"port" | "size" | "refreshSeconds", string>>;

const PORT = option(integer(0, 65_535), "port to listen on; 0: any free port", 0);
const REFRESH_SECONDS = option(integer(1, 3600), "how often the market moves", 30);

/** A daemon takes up to five seconds to stop. */
const GROUP_STOP_TIMEOUT_MS = 5_000;
const GROUP_POLL_MS = 50;

export function addSimulateCommand(program: Command, context: CommandContext): void {
  program
    .command("simulate")
    .description(
      "Serves the market data service (tokens, REST and websocket) on a local port. With a command, runs it with MDS_BASE_URL, " +
        "MDS_WS_URL, MDS_CLIENT_ID and MDS_CLIENT_SECRET in its environment, and ends with it and its exit code. Without one, prints " +
        "these settings on stdout, one NAME=value per line, and serves until it is stopped.",
    )
    .usage("[options] [-- command...]")
    .argument("[command...]", "after --: the command to run, with its arguments")
    .option("--port <n>", PORT.help, "0")
    .option("--size <size>", "demo: a dozen assets; real: 1,500 assets, 6,000 markets, 200 exchanges", "demo")
    .option("--refresh-seconds <n>", REFRESH_SECONDS.help, "30")
    .action(async (command: string[], flags: SimulateFlags) => {
      const simulator = await startOrReject(flags);
      const settings = {
        MDS_BASE_URL: simulator.baseUrl,
        MDS_WS_URL: simulator.wsUrl,
        MDS_CLIENT_ID: simulator.clientId,
        MDS_CLIENT_SECRET: simulator.clientSecret,
      };
      try {
        if (command.length > 0) throw new ChildExit(await runWith(settings, command, context));
        for (const [name, value] of Object.entries(settings)) context.stdout.write(`${name}=${value}\n`);
        context.stderr.write("the simulator is listening; stop it with Ctrl-C\n");
        if (!context.stopping.aborted) await once(context.stopping, "abort");
      } finally {
        await simulator.stop();
      }
    });
}

/**
 * Runs a command in a process group of its own, and ends the group with it. Returns its exit status; for a signal, and if it
 * cannot be run, that of a shell.
 */
async function runWith(
  settings: Record<string, string>,
  [program = "", ...args]: readonly string[],
  { env, stderr, dieOnSignal, clock }: CommandContext,
): Promise<number> {
  let child: ChildProcess | undefined;
  // The command and its children decide what a signal does.
  for (const signal of ["SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM"] as const)
    process.on(signal, () => void signalGroup(child, signal));
  // Keep this order: a signal without a handler, or during the start of the command, would be lost.
  dieOnSignal?.();
  child = spawn(program, args, { stdio: "inherit", env: { ...env, ...settings }, detached: true });
  try {
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    signalGroup(child, "SIGTERM");
    for (let waited = 0; waited < GROUP_STOP_TIMEOUT_MS && signalGroup(child, 0); waited += GROUP_POLL_MS)
      await clock.sleep(GROUP_POLL_MS);
    signalGroup(child, "SIGKILL");
    return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  } catch (error) {
    const code = errorCode(error);
    stderr.write(`mds-sync: cannot run ${program} (${code}): check its name and PATH\n`);
    return code === "ENOENT" ? 127 : 126;
  }
}

/** False if the group has no process. */
function signalGroup(leader: ChildProcess | undefined, signal: NodeJS.Signals | 0): boolean {
  try {
    return leader?.pid !== undefined && process.kill(-leader.pid, signal);
  } catch {
    return false;
  }
}

async function startOrReject(flags: SimulateFlags) {
  const size = readChoice("--size", flags.size, ["demo", "real"]);
  const port = readFlag("--port", flags.port, PORT);
  const refreshSeconds = readFlag("--refresh-seconds", flags.refreshSeconds, REFRESH_SECONDS);
  try {
    return await startSimulator({ size, port, refreshSeconds });
  } catch (error) {
    if (failureCode(error) === "http_port")
      throw usageFailure(`--port cannot be ${port}`, "give a free port, or 0");
    throw error;
  }
}
