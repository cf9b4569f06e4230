import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { type LoadedSettings, loadSettings } from "../../config/load-settings.ts";
import { Failure } from "../../model/failure.ts";
import { programFile } from "../../runtime/child-process.ts";

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
