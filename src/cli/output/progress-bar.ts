import type { Stream } from "../../model/streams.ts";
import type { SyncContext } from "../../sync/context/context.ts";
import type { StreamStats } from "../../sync/context/run-stats.ts";
import type { TextOutput } from "../../telemetry/nonblocking-stderr.ts";

const LOG_INTERVAL_MS = 10_000;
const REDRAW_INTERVAL_MS = 250;
const BAR_WIDTH = 20;
const SHOWN_STREAMS = ["index_ticks", "ohlcv"] as const satisfies readonly Stream[];

interface Progress {
  end(): void;
}

/** Draws bars on a terminal; elsewhere logs a line every ten seconds. */
export function showProgress(syncContext: SyncContext, stderr: TextOutput): Progress {
  return isTerminal(stderr) ? drawBars(syncContext, stderr) : logProgress(syncContext);
}

export function isTerminal(stream: NodeJS.WritableStream | TextOutput): boolean {
  return "isTTY" in stream && stream.isTTY === true;
}

function logProgress({ clock, stats, log }: SyncContext): Progress {
  const startedAt = clock.monotonic();
  return repeat(clock, LOG_INTERVAL_MS, () => {
    for (const stream of SHOWN_STREAMS) {
      const counts = stats.forStream(stream);
      if (counts.doneMicros >= counts.plannedMicros) continue;
      const { rowsPerSecond, percent, secondsLeft } = computeProgress(counts, clock.monotonic() - startedAt);
      const { received: rows, requests } = counts;
      log.info({ stream, rows, rowsPerSecond, requests, percent, secondsLeft }, "backfill in progress");
    }
  });
}

function drawBars({ clock, stats }: SyncContext, stderr: TextOutput): Progress {
  const startedAt = clock.monotonic();
  let drawn = 0;
  const draw = () => {
    const lines = SHOWN_STREAMS.filter((stream) => stats.forStream(stream).plannedMicros > 0).map((stream) =>
      formatBar(stream, stats.forStream(stream), clock.monotonic() - startedAt),
    );
    const up = drawn > 0 ? `\u001b[${drawn}A` : "";
    stderr.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join("")}`);
    drawn = lines.length;
  };
  const redraw = repeat(clock, REDRAW_INTERVAL_MS, draw);
  let isEnded = false;
  return {
    end() {
      if (isEnded) return;
      isEnded = true;
      redraw.end();
      draw();
    },
  };
}

/** The progress of one stream, within 80 columns. */
export function formatBar(stream: Stream, counts: StreamStats, ms: number): string {
  const { rowsPerSecond, percent, secondsLeft } = computeProgress(counts, ms);
  const full = Math.round((percent / 100) * BAR_WIDTH);
  const bar = "█".repeat(full) + "░".repeat(BAR_WIDTH - full);
  const rows = `${counts.received.toLocaleString("en-US")} rows`;
  const left = secondsLeft === null ? "" : percent >= 100 ? "done" : `${formatCountdown(secondsLeft)} left`;
  return `${stream.padEnd(12)}${bar} ${String(percent).padStart(3)} %  ${rows.padStart(16)}  ${rowsPerSecond.toLocaleString("en-US").padStart(7)}/s  ${left}`.trimEnd();
}

export function computeProgress(
  counts: StreamStats,
  ms: number,
): { rowsPerSecond: number; percent: number; secondsLeft: number | null } {
  // A range that is walked twice counts twice, so `done` can exceed `planned`.
  const share = counts.plannedMicros === 0 ? 1 : Math.min(1, counts.doneMicros / counts.plannedMicros);
  const percent = share === 1 ? 100 : Math.min(99, Math.floor(share * 100));
  const secondsLeft = share === 0 ? null : Math.round(((ms / share) * (1 - share)) / 1000);
  return {
    rowsPerSecond: ms === 0 ? 0 : Math.round((counts.received / ms) * 1000),
    percent,
    secondsLeft,
  };
}

function formatCountdown(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [hours = 0, minutes = 0, rest = 0] = parts;
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

function repeat(clock: SyncContext["clock"], ms: number, work: () => void): Progress {
  let cancel = () => {};
  const arm = () => {
    cancel = clock.after(ms, () => {
      work();
      arm();
    });
  };
  arm();
  return { end: () => cancel() };
}
