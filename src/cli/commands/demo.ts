import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { type LoadedSettings, loadSettings } from "../../config/load-settings.ts";
import { Failure } from "../../model/failure.ts";
import { ownFile } from "../../runtime/child-process.ts";

export interface Demo {
  readonly loaded: LoadedSettings;
  stop(): Promise<void>;
}

const WAREHOUSE = "data/demo.sqlite";
/** Faster than the real service, so that a person sees it live. */
const REFRESH_SECONDS = 5;
const DAYS = 3;

/** Starts the simulator in a process of its own, and gives settings that point at it and want little enough to watch. */
export async function startDemo(
  flags: { httpHost?: string; httpPort?: string; warehouse?: string },
  outside: NodeJS.ProcessEnv,
): Promise<Demo> {
  const args = [
    ownFile("../main", import.meta.url),
    "simulate",
    "--refresh-seconds",
    String(REFRESH_SECONDS),
  ];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"], detached: true });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  // Where to listen is the operator's to say. MDS_WAREHOUSE is not heeded: it may name a real one, which is no place for
  // invented data.
  const env: Record<string, string> = {};
  for (const name of ["MDS_HTTP_HOST", "MDS_HTTP_PORT"] as const) {
    const value = outside[name];
    if (value !== undefined) env[name] = value;
  }
  for await (const line of createInterface({ input: child.stdout })) {
    const [, name = "", value = ""] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
    env[name] = value;
    if (name === "MDS_CLIENT_SECRET") break;
  }
  if (!env.MDS_CLIENT_SECRET) {
    await stop();
    throw new Failure("the simulator did not start", {
      family: "bug",
      code: "demo",
      remedy: "try mds-sync simulate",
    });
  }
  const loaded = loadSettings({
    env,
    flags: {
      "warehouse.path": flags.warehouse ?? WAREHOUSE,
      ...(flags.httpHost === undefined ? {} : { "http.host": flags.httpHost }),
      ...(flags.httpPort === undefined ? {} : { "http.port": flags.httpPort }),
    },
  });
  const { settings } = loaded;
  const all = { kind: "all" } as const;
  const intraday = { GWA: all, MWA: { kind: "none" }, LX: all, days: DAYS } as const;
  return {
    stop,
    loaded: {
      ...loaded,
      settings: {
        ...settings,
        service: { ...settings.service, refreshSeconds: REFRESH_SECONDS },
        sync: { ...settings.sync, intraday },
      },
    },
  };
}
