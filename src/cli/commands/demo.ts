import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type LoadedSettings, loadSettings } from "../../config/load-settings.ts";
import { Failure } from "../../model/failure.ts";
import { programFile } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { TextOutput } from "../../telemetry/nonblocking-stderr.ts";
import { withReader } from "../../warehouse/reader.ts";
import { formatNumber } from "../output/text.ts";
import { isTerminal } from "../support/context.ts";

interface Demo {
  readonly loaded: LoadedSettings;
  /** The usual port of the dashboard, if another program has it; the demo then uses any free one. */
  readonly takenPort: number | undefined;
  stop(): Promise<void>;
}

/** The settings that an operator may choose. */
export interface DemoFlags {
  readonly httpHost?: string;
  readonly httpPort?: string;
  readonly warehouse?: string;
}

const DEMO_WAREHOUSE = "data/demo.sqlite";
/** Shorter than the service's 30 seconds, so that a person sees live ticks soon. */
const REFRESH_SECONDS = 5;
const INTRADAY_DAYS = 3;

/** Starts the simulator in its own process. Returns settings for it with a selection that fills in seconds. */
export async function startDemo(flags: DemoFlags, parentEnv: NodeJS.ProcessEnv): Promise<Demo> {
  const args = [programFile, "simulate", "--refresh-seconds", String(REFRESH_SECONDS)];
  // The simulator stops when the IPC channel closes, so it does not outlive a demo that is killed.
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore", "ipc"], detached: true });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  // The operator may choose the HTTP address. MDS_WAREHOUSE is ignored: it may name a real warehouse, and simulated data must
  // never get into it.
  const { MDS_HTTP_HOST, MDS_HTTP_PORT } = parentEnv;
  const env: Record<string, string | undefined> = { MDS_HTTP_HOST, MDS_HTTP_PORT };
  for await (const line of child.stdout ? createInterface({ input: child.stdout }) : []) {
    const [, name = "", value = ""] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
    env[name] = value;
    if (name === "MDS_CLIENT_SECRET") break;
  }
  if (!env.MDS_CLIENT_SECRET) {
    await stop();
    throw new Failure("the simulator did not start", { code: "demo", remedy: "try mds-sync simulate" });
  }
  const loaded = loadSettings({
    env,
    flags: {
      "warehouse.path": flags.warehouse ?? DEMO_WAREHOUSE,
      "http.host": flags.httpHost,
      "http.port": flags.httpPort,
    },
  });
  const { settings } = loaded;
  const { host, port } = settings.http;
  const isPortChosen = (flags.httpPort ?? MDS_HTTP_PORT) !== undefined;
  const isPortTaken = !isPortChosen && !(await canListen(host, port));
  const all = { kind: "all" } as const;
  const intraday = { GWA: all, MWA: { kind: "none" }, LX: all, days: INTRADAY_DAYS } as const;
  return {
    stop,
    takenPort: isPortTaken ? port : undefined,
    loaded: {
      ...loaded,
      settings: {
        ...settings,
        http: { ...settings.http, port: isPortTaken ? 0 : port },
        service: { ...settings.service, refreshSeconds: REFRESH_SECONDS },
        sync: { ...settings.sync, intraday },
      },
    },
  };
}

function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, host, () => probe.close(() => resolve(true)));
  });
}

/** Output that is not a terminal cannot be redrawn, so it gets a new line less often. */
const LINE_INTERVAL_MS = 10_000;
const REDRAW_INTERVAL_MS = 1_000;
const SCREEN_WIDTH = 80;
/** Assets with well-known prices. */
const SHOWN_ASSETS = ["BTC", "ETH", "SOL", "XRP"];

/** How a person in this folder calls the program: in a clone, a script beside `dist` runs it with the project's own Node. */
export function programIn(folder: string): string {
  return existsSync(join(folder, "mds-sync")) ? "./mds-sync" : "mds-sync";
}

interface DemoScreenOptions {
  readonly path: string;
  readonly clock: Pick<Clock, "monotonic" | "now">;
  readonly stderr: TextOutput;
  /** How to call the program. */
  readonly program: string;
}

/** Writes what the demo shows besides the progress of its backfill. */
export class DemoScreen {
  readonly #options: DemoScreenOptions;
  readonly #isTerminal: boolean;
  #isFilled = false;
  #isEnded = false;
  #hasDrawnLine = false;
  #indexTicks = 0;
  #exchangeTicks = 0;
  #shownAt = Number.NEGATIVE_INFINITY;

  constructor(options: DemoScreenOptions) {
    this.#options = options;
    this.#isTerminal = isTerminal(options.stderr);
  }

  showIntroduction(takenPort?: number): void {
    this.#writeLine("demo: the data comes from a built-in simulator; nothing leaves this machine");
    if (takenPort !== undefined)
      this.#writeLine(`demo: port ${takenPort} is in use, so the dashboard takes another`);
  }

  /** `address`: of the dashboard. */
  showAddresses(address: string): void {
    this.#writeLine(`dashboard: ${address}`);
    this.#writeLine(`ledger:    ${new URL("sync", address).href}`);
  }

  /** Called when the backfill is done. */
  showExampleQueries(): void {
    const yesterday = new Date(this.#options.clock.now() - 86_400_000).toISOString().slice(0, 10);
    const command = (text: string) => `  ${this.#options.program} ${text}`;
    for (const line of [
      "",
      "try, in another terminal:",
      `  export MDS_WAREHOUSE=${this.#options.path}`,
      command('query "SELECT name, time, price_exact FROM latest_index_ticks"'),
      command(`query "SELECT name, close FROM ohlcv WHERE day = '${yesterday}'"`),
      command("bars BTC --every 1h --from now-6h --columns time,close,is_complete"),
      "",
    ])
      this.#writeLine(line);
    this.#isFilled = true;
  }

  /** Called when live ticks are committed. Shows nothing while the backfill draws its progress. */
  showLiveTicks(rows: { readonly indexTicks: number; readonly exchangeTicks: number }): void {
    this.#indexTicks += rows.indexTicks;
    this.#exchangeTicks += rows.exchangeTicks;
    const isEmpty = this.#indexTicks + this.#exchangeTicks === 0;
    const intervalMs = this.#isTerminal ? REDRAW_INTERVAL_MS : LINE_INTERVAL_MS;
    if (
      !this.#isFilled ||
      this.#isEnded ||
      isEmpty ||
      this.#options.clock.monotonic() - this.#shownAt < intervalMs
    )
      return;
    this.#shownAt = this.#options.clock.monotonic();
    const counts = `${formatNumber(this.#indexTicks)} index and ${formatNumber(this.#exchangeTicks)} exchange ticks`;
    // As many prices as fit: a longer line could not be redrawn.
    const line = this.#formatPrices().reduce(
      (all, price) => (all.length + 2 + price.length < SCREEN_WIDTH ? `${all}, ${price}` : all),
      `live: ${counts}`,
    );
    this.#options.stderr.write(this.#isTerminal ? `\r\u001b[2K${line}\r` : `${line}\n`);
    this.#hasDrawnLine = this.#isTerminal;
  }

  /** Called when the demo is stopped: removes the redrawn line, which a Ctrl-C on the terminal has damaged. */
  end(): void {
    this.#isEnded = true;
    if (this.#hasDrawnLine) this.#options.stderr.write("\r\u001b[2K");
    this.#hasDrawnLine = false;
  }

  #writeLine(line: string): void {
    this.#options.stderr.write(`${line}\n`);
  }

  #formatPrices(): string[] {
    const sql = `SELECT name, price FROM latest_index_ticks WHERE index_type = 'GWA' AND name IN (${SHOWN_ASSETS.map(() => "?").join()})`;
    const rows = withReader(this.#options.path, (reader) =>
      reader.rows<{ name: string; price: number | null }>(sql, SHOWN_ASSETS),
    );
    const known = rows.toSorted((a, b) => SHOWN_ASSETS.indexOf(a.name) - SHOWN_ASSETS.indexOf(b.name));
    return known.map(({ name, price }) => `${name} ${formatPrice(price)}`);
  }
}

function formatPrice(price: number | null): string {
  const digits = price !== null && Math.abs(price) < 10 ? 4 : 2;
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return price === null ? "–" : price.toLocaleString("en-US", format);
}
