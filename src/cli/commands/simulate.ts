import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { type Option, wholeNumber } from "../../config/option-types.ts";
import { nearest } from "../../model/did-you-mean.ts";
import { describeFaultWords } from "../../simulator/faults/catalogue.ts";
import { FaultScriptError } from "../../simulator/faults/parser.ts";
import { type Quirks, usualQuirks } from "../../simulator/market/quirks.ts";
import type { Simulator, SimulatorOptions } from "../../simulator/simulator.ts";
import type { CommandContext } from "../support/context.ts";
import { usageFailure } from "../support/context.ts";
import { collect } from "../support/selection-flags.ts";

interface Flags {
  host: string;
  port: string;
  seed: string;
  size: string;
  refreshSeconds: string;
  faults?: string;
  quirk?: string[];
}

const numbers = {
  port: wholeNumber({ help: "port to listen on; 0: any free one" }, 0, 0, 65_535),
  seed: wholeNumber({ help: "the same seed gives the same market" }, 1, 0, 2 ** 32 - 1),
  "refresh-seconds": wholeNumber({ help: "how often the market moves" }, 30, 1, 3600),
};

const sizes = ["demo", "real"] as const;

export function addSimulateCommand(program: Command, context: CommandContext): void {
  program
    .command("simulate")
    .summary("run the built-in simulator of the service, for trying clients")
    .description(
      "Serves the whole market data service on a local port until it is stopped: tokens, REST and websocket. " +
        "Prints the settings of a client on stdout, one NAME=value a line, so that a client can be pointed at it:\n\n" +
        "  mds-sync simulate > simulator.env &\n" +
        "  set -a; . ./simulator.env; set +a",
    )
    .option("--host <address>", "loopback address to listen on", "127.0.0.1")
    .option("--port <n>", numbers.port.help, "0")
    .option("--size <size>", "demo: a dozen assets; real: 1,500 assets, 6,000 markets, 200 exchanges", "demo")
    .option("--seed <n>", numbers.seed.help, "1")
    .option("--refresh-seconds <n>", numbers["refresh-seconds"].help, "30")
    .option("--faults <file>", "a fault script: what goes wrong, one line per fault (words below)")
    .option("--quirk <name=value>", "a choice that the specification leaves open (names below)", collect)
    .addHelpText("after", () => `\n${faultHelp()}\n\n${quirkHelp()}`)
    .action(async (flags: Flags) => {
      const simulator = await start(readOptions(flags));
      const { baseUrl, wsUrl, clientId, clientSecret } = simulator;
      context.stdout.write(
        `MDS_BASE_URL=${baseUrl}\nMDS_WS_URL=${wsUrl}\nMDS_CLIENT_ID=${clientId}\nMDS_CLIENT_SECRET=${clientSecret}\n`,
      );
      context.stderr.write("the simulator is listening; stop it with Ctrl-C\n");
      if (!context.stopping.aborted) await once(context.stopping, "abort");
      await simulator.stop();
    });
}

async function start(options: SimulatorOptions): Promise<Simulator> {
  // Loaded when it runs: no other command waits for a whole market.
  const { startSimulator } = await import("../../simulator/simulator.ts");
  try {
    return await startSimulator(options);
  } catch (error) {
    if (error instanceof FaultScriptError)
      throw usageFailure(`--faults: ${error.message}`, "see mds-sync simulate --help");
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EADDRINUSE" || code === "EACCES")
      return wrong("--port", `${options.port} (${code})`, "a free one, or 0");
    throw error;
  }
}

function readOptions(flags: Flags): SimulatorOptions {
  const size = sizes.find((name) => name === flags.size) ?? wrong("--size", flags.size, sizes.join(" or "));
  if (!/^(localhost|127\.|::1)/.test(flags.host)) wrong("--host", flags.host, "a loopback address");
  return {
    host: flags.host,
    size,
    port: readNumber("port", flags.port),
    seed: readNumber("seed", flags.seed),
    refreshSeconds: readNumber("refresh-seconds", flags.refreshSeconds),
    quirks: Object.fromEntries((flags.quirk ?? []).map(readQuirk)),
    ...(flags.faults === undefined ? {} : { faults: readScript(flags.faults) }),
  };
}

function readNumber(flag: keyof typeof numbers, text: string): number {
  const option: Option<number> = numbers[flag];
  const reading = option.read(text);
  return "value" in reading ? reading.value : wrong(`--${flag}`, text, reading.wanted);
}

function readScript(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return wrong("--faults", file, "a file that can be read");
  }
}

/** `cursor=inclusive`, `missingPerMille=3`, `late={"perMille":2,"seconds":90}`. */
function readQuirk(text: string): [string, unknown] {
  const [, name = text, value = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  const usual = usualQuirks[name as keyof Quirks];
  if (usual === undefined) {
    const meant = nearest(name, Object.keys(usualQuirks));
    return wrong("--quirk", text, meant ? `${meant}=…` : "one of the names in mds-sync simulate --help");
  }
  const parsed = parseLoosely(value);
  const fits = typeof usual === "string" ? value !== "" : typeof parsed === typeof usual;
  return fits
    ? [name, typeof usual === "string" ? value : parsed]
    : wrong("--quirk", text, `${name}=${JSON.stringify(usual)} or the like`);
}

function parseLoosely(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function faultHelp(): string {
  const usage =
    "Faults (WHERE WHAT [PARAMETERS] [CONDITIONS], for example: GET /index-ticker status 503 p=0.1):";
  return `${usage}\n${describeFaultWords().replace(/^/gm, "  ")}`;
}

function quirkHelp(): string {
  const entries = Object.entries(usualQuirks);
  return `Quirks, with what is usual:\n${entries.map(([name, value]) => `  ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n")}`;
}

function wrong(flag: string, value: string, right: string): never {
  throw usageFailure(`${flag} cannot be ${value}`, `give ${right}`);
}
