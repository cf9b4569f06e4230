import type { Stream } from "../../model/streams.ts";
import type { Intake } from "../../sync/context/context.ts";
import type { StreamTally } from "../../sync/context/run-stats.ts";
import type { Talk } from "../../telemetry/nonblocking-stderr.ts";

const EVERY_MS = 10_000;
const REDRAW_MS = 250;
const BAR = 20;
const shown = ["index_ticks", "ohlcv"] as const satisfies readonly Stream[];

export interface Progress {
  end(): void;
}

/** Bars on a terminal; elsewhere one line of log every ten seconds. */
export function showProgress(intake: Intake, stderr: Talk): Progress {
  return isTerminal(stderr) ? drawBars(intake, stderr) : logLines(intake);
}

export function isTerminal(stream: NodeJS.WritableStream | Talk): boolean {
  return "isTTY" in stream && stream.isTTY === true;
}

function logLines({ clock, tally, log }: Intake): Progress {
  const begun = clock.monotonic();
  return repeat(clock, EVERY_MS, () => {
    for (const stream of shown) {
      const counts = tally.of(stream);
      if (counts.done >= counts.planned) continue;
      const { rowsPerSecond, percent, secondsLeft } = figures(counts, clock.monotonic() - begun);
      const { received: rows, requests } = counts;
      log.info({ stream, rows, rowsPerSecond, requests, percent, secondsLeft }, "backfill under way");
    }
  });
}

function drawBars({ clock, tally }: Intake, stderr: Talk): Progress {
  const begun = clock.monotonic();
  let drawn = 0;
  const draw = () => {
    const lines = shown
      .filter((stream) => tally.of(stream).planned > 0)
      .map((stream) => barLine(stream, tally.of(stream), clock.monotonic() - begun));
    const up = drawn > 0 ? `\u001b[${drawn}A` : "";
    stderr.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join("")}`);
    drawn = lines.length;
  };
  const redraw = repeat(clock, REDRAW_MS, draw);
  let isOver = false;
  return {
    end() {
      if (isOver) return;
      isOver = true;
      redraw.end();
      draw();
    },
  };
}

/** One stream at a glance, within 80 columns. */
export function barLine(stream: Stream, counts: StreamTally, ms: number): string {
  const { rowsPerSecond, percent, secondsLeft } = figures(counts, ms);
  const full = Math.round((percent / 100) * BAR);
  const bar = "█".repeat(full) + "░".repeat(BAR - full);
  const rows = `${counts.received.toLocaleString("en-US")} rows`;
  const left = secondsLeft === null ? "" : percent >= 100 ? "done" : `${clockTime(secondsLeft)} left`;
  return `${stream.padEnd(12)}${bar} ${String(percent).padStart(3)} %  ${rows.padStart(16)}  ${rowsPerSecond.toLocaleString("en-US").padStart(7)}/s  ${left}`.trimEnd();
}

export function figures(
  counts: StreamTally,
  ms: number,
): { rowsPerSecond: number; percent: number; secondsLeft: number | null } {
  // What is walked twice counts twice, and must not show as more than all.
  const share = counts.planned === 0 ? 1 : Math.min(1, counts.done / counts.planned);
  const percent = share === 1 ? 100 : Math.min(99, Math.floor(share * 100));
  const secondsLeft = share === 0 ? null : Math.round(((ms / share) * (1 - share)) / 1000);
  return {
    rowsPerSecond: ms === 0 ? 0 : Math.round((counts.received / ms) * 1000),
    percent,
    secondsLeft,
  };
}

function clockTime(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [hours = 0, minutes = 0, rest = 0] = parts;
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

function repeat(clock: Intake["clock"], ms: number, work: () => void): Progress {
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
