import { resolveSiblingModule, runChildProcess } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { QuickCheckReport } from "./quick-check-process.ts";

/** `unfinished`: the check timed out or failed before it found any damage. */
type QuickCheckResult =
  | { readonly outcome: "sound" | "unfinished" }
  | { readonly outcome: "damaged"; readonly finding: string };

/** Runs `PRAGMA quick_check` in a child process; the writer may write meanwhile. A large file takes minutes. */
export async function runQuickCheck(
  path: string,
  { clock, deadlineMs, signal }: { clock: Clock; deadlineMs: number; signal?: AbortSignal },
): Promise<QuickCheckResult> {
  const timeout = new AbortController();
  const release = clock.beginWork();
  const cancel = clock.after(deadlineMs, () => timeout.abort());
  try {
    const { result: report } = await runChildProcess<QuickCheckReport>(
      resolveSiblingModule("./quick-check-process", import.meta.url),
      [path],
      { signal: signal ? AbortSignal.any([timeout.signal, signal]) : timeout.signal, stderr: "ignore" },
    );
    return report ? toQuickCheckResult(report) : { outcome: "unfinished" };
  } finally {
    cancel();
    release();
  }
}

function toQuickCheckResult(report: QuickCheckReport): QuickCheckResult {
  if ("result" in report)
    return report.result === "ok"
      ? { outcome: "sound" }
      : { outcome: "damaged", finding: report.result.replaceAll(/\s+/g, " ") };
  // Any other error (permissions, memory) says nothing about the file.
  return /^SQLITE_(CORRUPT|NOTADB)/.test(report.code)
    ? { outcome: "damaged", finding: report.code }
    : { outcome: "unfinished" };
}
