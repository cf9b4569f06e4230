import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buildProgram } from "./built-program.ts";
import type { RecordedService } from "./start-recorded-service.ts";

interface BackfillRun {
  readonly rows: number;
  readonly rowsPerSecond: number;
  /** The largest resident set; see usage-report.mjs. */
  readonly peakBytes: number;
}

export const CONCURRENCY = 8;
export const usageReport = resolve(import.meta.dirname, "usage-report.mjs");

/** Runs `mds-sync backfill` in its own process, into an empty warehouse. */
export async function runBackfill(service: RecordedService): Promise<BackfillRun> {
  const entry = buildProgram();
  using folder = mkdtempDisposableSync(join(tmpdir(), "mds-bench-"));
  const settings = `service: { concurrency: ${CONCURRENCY} }
sync: { ohlcv: false, exchangeTickers: false, marketCap: false, derivatives: false,
  intraday: { GWA: ${JSON.stringify(service.ids)}, MWA: none, LX: none, days: 200 } }`;
  writeFileSync(join(folder.path, "mds-sync.yaml"), settings);
  const usageFile = join(folder.path, "usage");
  const toText = (ms: number) => new Date(ms).toISOString();
  const range = ["--from", toText(service.fromMs), "--to", toText(service.toMs)];
  const flags = ["backfill", "--json", "--no-progress", "--log-level", "error", "--stream", "index_ticks"];
  const child = spawn(process.execPath, ["--import", usageReport, entry, ...flags, ...range], {
    cwd: folder.path,
    env: {
      PATH: process.env.PATH ?? "",
      MDS_BASE_URL: service.baseUrl,
      MDS_WS_URL: service.baseUrl.replace("http", "ws"),
      MDS_CLIENT_ID: "bench",
      MDS_CLIENT_SECRET: "bench",
      MDS_WAREHOUSE: join(folder.path, "mds.sqlite"),
      BENCH_USAGE: usageFile,
      ...(process.env.NODE_OPTIONS ? { NODE_OPTIONS: process.env.NODE_OPTIONS } : {}),
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let report = "";
  child.stdout.on("data", (chunk) => {
    report += String(chunk);
  });
  const [status] = await once(child, "close");
  if (status !== 0) throw new Error(`the backfill exited with ${status}: ${report}`);
  const { seconds, streams } = JSON.parse(report) as {
    seconds: number;
    streams: { stream: string; rows: number }[];
  };
  const rows = streams.find(({ stream }) => stream === "index_ticks")?.rows ?? 0;
  const { peakBytes } = JSON.parse(readFileSync(usageFile, "utf8")) as { peakBytes: number };
  return { rows, rowsPerSecond: rows / seconds, peakBytes };
}
