import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Command } from "commander";
import { integerOption, type Option } from "../../config/option-types.ts";
import { findClosestWord } from "../../model/did-you-mean.ts";
import { errorCode } from "../../model/failure.ts";
import { isHost } from "../../model/service-url.ts";
import { describeFaults } from "../../simulator/faults/catalogue.ts";
import { FaultScriptError } from "../../simulator/faults/parser.ts";
import { defaultQuirks, type Quirks } from "../../simulator/market/quirks.ts";
import type { Simulator, SimulatorOptions } from "../../simulator/simulator.ts";
import { ChildExit, type CommandContext, usageFailure } from "../support/context.ts";
import { collectValues } from "../support/selection-flags.ts";

interface SimulateFlags {
  host: string;
  port: string;
  seed: string;
  size: string;
  refreshSeconds: string;
  faults?: string;
  quirk?: string[];
}

const NUMBER_OPTIONS = {
  port: integerOption("port to listen on; 0: any free port", 0, 0, 65_535),
  seed: integerOption("the same seed gives the same market", 1, 0, 2 ** 32 - 1),
  "refresh-seconds": integerOption("how often the market moves", 30, 1, 3600),
};

/** A daemon takes up to five seconds to stop. */
const GROUP_STOP_TIMEOUT_MS = 5_000;
const GROUP_POLL_MS = 50;

const SIZES = ["demo", "real"] as const;

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
    .option("--host <address>", "loopback address to listen on", "127.0.0.1")
    .option("--port <n>", NUMBER_OPTIONS.port.help, "0")
    .option("--size <size>", "demo: a dozen assets; real: 1,500 assets, 6,000 markets, 200 exchanges", "demo")
    .option("--seed <n>", NUMBER_OPTIONS.seed.help, "1")
    .option("--refresh-seconds <n>", NUMBER_OPTIONS["refresh-seconds"].help, "30")
    .option("--faults <file>", "a fault script with one fault per line (words below)")
    .option(
      "--quirk <name=value>",
      "a choice that the specification leaves open (names below)",
      collectValues,
    )
    .addHelpText("after", () => `\n${formatFaultHelp()}\n\n${formatQuirkHelp()}`)
    .action(async (command: string[], flags: SimulateFlags) => {
      const simulator = await startOrReject(readOptions(flags));
      const { baseUrl, wsUrl, clientId, clientSecret } = simulator;
      const settings = {
        MDS_BASE_URL: baseUrl,
        MDS_WS_URL: wsUrl,
        MDS_CLIENT_ID: clientId,
        MDS_CLIENT_SECRET: clientSecret,
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
  // In this order: a signal that comes while nobody listens, or while the command starts, would be lost.
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

async function startOrReject(options: SimulatorOptions): Promise<Simulator> {
  // Loaded lazily, so that other commands do not load the simulator.
  const { startSimulator } = await import("../../simulator/simulator.ts");
  try {
    return await startSimulator(options);
  } catch (error) {
    if (error instanceof FaultScriptError)
      throw usageFailure(`--faults: ${error.message}`, "see mds-sync simulate --help");
    const code = errorCode(error);
    if (code === "EADDRINUSE" || code === "EACCES")
      return rejectFlag("--port", `${options.port} (${code})`, "a free port, or 0");
    throw error;
  }
}

function readOptions(flags: SimulateFlags): SimulatorOptions {
  const size =
    SIZES.find((name) => name === flags.size) ?? rejectFlag("--size", flags.size, SIZES.join(" or "));
  if (!isHost(flags.host) || !/^(localhost$|127\.|::1$)/.test(flags.host))
    rejectFlag("--host", flags.host, "a loopback address");
  return {
    host: flags.host,
    size,
    port: readNumber("port", flags.port),
    seed: readNumber("seed", flags.seed),
    refreshSeconds: readNumber("refresh-seconds", flags.refreshSeconds),
    quirks: Object.fromEntries((flags.quirk ?? []).map(readQuirk)),
    ...(flags.faults === undefined ? {} : { faults: readFaultScript(flags.faults) }),
  };
}

function readNumber(flag: keyof typeof NUMBER_OPTIONS, text: string): number {
  const option: Option<number> = NUMBER_OPTIONS[flag];
  const result = option.parse(text);
  return "value" in result ? result.value : rejectFlag(`--${flag}`, text, result.expected);
}

function readFaultScript(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return rejectFlag("--faults", file, "a file that can be read");
  }
}

/** `cursor=inclusive`, `missingPerMille=3`, `late={"perMille":2,"seconds":90}`. */
function readQuirk(text: string): [string, unknown] {
  const [, name = text, value = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  const defaultValue = defaultQuirks[name as keyof Quirks];
  if (defaultValue === undefined) {
    const suggestion = findClosestWord(name, Object.keys(defaultQuirks));
    return rejectFlag(
      "--quirk",
      text,
      suggestion ? `${suggestion}=…` : "one of the names in mds-sync simulate --help",
    );
  }
  const parsed = parseJsonOrText(value);
  const fits = typeof defaultValue === "string" ? value !== "" : typeof parsed === typeof defaultValue;
  return fits
    ? [name, typeof defaultValue === "string" ? value : parsed]
    : rejectFlag("--quirk", text, `a value such as ${name}=${JSON.stringify(defaultValue)}`);
}

function parseJsonOrText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function formatFaultHelp(): string {
  const usage =
    "Faults (WHERE WHAT [PARAMETERS] [CONDITIONS], for example: GET /index-ticker status 503 p=0.1):";
  return `${usage}\n${describeFaults().replace(/^/gm, "  ")}`;
}

function formatQuirkHelp(): string {
  const entries = Object.entries(defaultQuirks);
  return `Quirks, with their defaults:\n${entries.map(([name, value]) => `  ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n")}`;
}

function rejectFlag(flag: string, value: string, expected: string): never {
  throw usageFailure(`${flag} cannot be ${value}`, `give ${expected}`);
}
