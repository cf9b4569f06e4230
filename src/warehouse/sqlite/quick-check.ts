import { resolveSiblingModule, runChildProcess } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { QuickCheckResult } from "./quick-check-process.ts";

/** Runs `PRAGMA quick_check` in a child process; the writer may write meanwhile. A large file takes minutes. */
export async function runQuickCheck(
  path: string,
  { clock, deadlineMs, signal }: { clock: Clock; deadlineMs: number; signal?: AbortSignal },
): Promise<QuickCheckResult> {
  const timeout = new AbortController();
  const release = clock.beginWork();
  const cancel = clock.after(deadlineMs, () => timeout.abort());
  try {
    const { result } = await runChildProcess<QuickCheckResult>(
      resolveSiblingModule("./quick-check-process", import.meta.url),
      [path],
      { signal: signal ? AbortSignal.any([timeout.signal, signal]) : timeout.signal, stderr: "ignore" },
    );
    return result ?? { outcome: "unfinished" };
  } finally {
    cancel();
    release();
  }
}
