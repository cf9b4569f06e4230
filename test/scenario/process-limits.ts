import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** /proc counts CPU time in hundredths of a second on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;

/** CPU time of all threads since the start. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = "", system = ""] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11);
  return (Number(user) + Number(system)) / TICKS_PER_SECOND;
}

/** Peak resident memory. */
export function peakMegabytes(pid: number): number {
  const kib = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

/** The number that the next opened file descriptor gets. */
export function nextDescriptor(pid: number): number {
  const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let next = 0;
  while (taken.has(next)) next++;
  return next;
}

/** Changes the soft limit of a running process as user `uid`. The hard limit stays, so that it can be raised again. */
export function setLimit(pid: number, name: "as" | "nofile" | "nproc", value: number, uid?: number): void {
  const user = uid === undefined ? {} : { uid, gid: uid };
  const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), `--${name}=${value}:`], user);
  if (status !== 0) throw new Error(String(stderr));
}
