import { historyStreams } from "../../model/streams.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { SyncContext } from "../../sync/context/context.ts";
import { computeProgress, countsOf, type ProgressCounts } from "../../sync/context/run-stats.ts";
import type { TextOutput } from "../../telemetry/nonblocking-stderr.ts";
import { type CommandContext, type CommonFlags, hasBars, isTerminal } from "../support/context.ts";
import { formatNumber } from "./text.ts";

const LOG_INTERVAL_MS = 10_000;
const REDRAW_INTERVAL_MS = 250;
const BAR_WIDTH = 20;

/** Ends what shows progress. */
type EndProgress = () => void;

/** Shows the progress of a backfill: bars on a terminal, elsewhere a log line every ten seconds. */
export function showProgress({ clock, stats, log }: SyncContext, stderr: TextOutput): EndProgress {
  return isTerminal(stderr)
    ? drawBars(clock, stderr, () => historyStreams.map((stream) => [stream, countsOf(stats, stream)]))
    : logProgress({ clock, stats, log });
}

function logProgress({ clock, stats, log }: Pick<SyncContext, "clock" | "stats" | "log">): EndProgress {
  const startedAt = clock.monotonic();
  return repeat(clock, LOG_INTERVAL_MS, () => {
    for (const stream of historyStreams) {
      const counts = countsOf(stats, stream);
      if (counts.done >= counts.planned) continue;
      const { rowsPerSecond, percent, secondsLeft } = computeProgress(counts, clock.monotonic() - startedAt);
      const { requests } = stats.forStream(stream);
      log.info(
        { stream, rows: counts.rows, rowsPerSecond, requests, percent, secondsLeft },
        "backfill in progress",
      );
    }
  });
}

/** Draws a bar per label on a terminal, and redraws it until `end`. A label without planned work has no bar. */
function drawBars(
  clock: Pick<Clock, "monotonic" | "after">,
  stderr: TextOutput,
  read: () => readonly (readonly [label: string, counts: ProgressCounts])[],
): EndProgress {
  const startedAt = clock.monotonic();
  let drawn = 0;
  const draw = () => {
    const lines = read()
      .filter(([, { planned }]) => planned > 0)
      .map(([label, counts]) => formatBar(label, counts, clock.monotonic() - startedAt));
    // Return to the first column: a Ctrl-C has moved the cursor.
    const up = drawn > 0 ? `\r\u001b[${drawn}A` : "";
    stderr.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join("")}`);
    drawn = lines.length;
  };
  const endRedraw = repeat(clock, REDRAW_INTERVAL_MS, draw);
  let isEnded = false;
  return () => {
    if (isEnded) return;
    isEnded = true;
    endRedraw();
    draw();
  };
}

/** Runs `work` under a bar, if the command draws bars. */
export async function underBar<T>(
  flags: Pick<CommonFlags, "progress">,
  context: Pick<CommandContext, "clock" | "stderr">,
  label: string,
  read: () => ProgressCounts,
  work: () => Promise<T>,
): Promise<T> {
  if (!hasBars(flags, context)) return work();
  return work().finally(drawBars(context.clock, context.stderr, () => [[label, read()]]));
}

/** One bar within 80 columns. */
export function formatBar(label: string, counts: ProgressCounts, ms: number): string {
  const { rowsPerSecond, percent, secondsLeft } = computeProgress(counts, ms);
  const full = Math.round((percent / 100) * BAR_WIDTH);
  const bar = "█".repeat(full) + "░".repeat(BAR_WIDTH - full);
  const rows = `${formatNumber(counts.rows)} rows`;
  const left = secondsLeft === null ? "" : percent >= 100 ? "done" : `${formatCountdown(secondsLeft)} left`;
  return `${label.padEnd(12)}${bar} ${String(percent).padStart(3)} %  ${rows.padStart(16)}  ${formatNumber(rowsPerSecond).padStart(7)}/s  ${left}`.trimEnd();
}

function formatCountdown(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [hours = 0, minutes = 0, rest = 0] = parts;
  const twoDigits = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${twoDigits(rest)}` : `${minutes}:${twoDigits(rest)}`;
}

function repeat(clock: Pick<Clock, "after">, ms: number, work: () => void): EndProgress {
  let cancel = () => {};
  const arm = () => {
    cancel = clock.after(ms, () => {
      work();
      arm();
    });
  };
  arm();
  return () => cancel();
}
