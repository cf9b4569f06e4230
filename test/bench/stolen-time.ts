import { readFileSync } from "node:fs";

/** With more than this, a figure that depends on two busy cores is too low. */
export const MAX_STOLEN_FRACTION = 0.03;

/** Starts to watch how much of the CPU time the host gives to other virtual machines; 0 where that is unknown. */
export function watchStolenTime(): () => number {
  const before = readCpuTimes();
  return () => {
    const after = readCpuTimes();
    const all = after.all - before.all;
    return all > 0 ? (after.stolen - before.stolen) / all : 0;
  };
}

/** Of all cores, since the start of the machine. */
function readCpuTimes(): { readonly all: number; readonly stolen: number } {
  try {
    // cpu user nice system idle iowait irq softirq steal …
    const times =
      readFileSync("/proc/stat", "utf8").split("\n")[0]?.split(/\s+/).slice(1, 9).map(Number) ?? [];
    return { all: times.reduce((sum, time) => sum + time, 0), stolen: times[7] ?? 0 };
  } catch {
    return { all: 0, stolen: 0 };
  }
}
