import { ownFile, runHelper } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { QuickCheckReport } from "./quick-check-process.ts";

/** `unfinished`: no damage was found before the time was up, or before the check itself broke off. */
export type QuickCheck =
  | { readonly verdict: "sound" | "unfinished" }
  | { readonly verdict: "damaged"; readonly finding: string };

/**
 * Reads the whole structure of the file, beside any writer, for at most `deadlineMs` and until the signal: a large file
 * takes minutes.
 */
export async function quickCheck(
  path: string,
  { clock, deadlineMs, signal }: { clock: Clock; deadlineMs: number; signal?: AbortSignal },
): Promise<QuickCheck> {
  const late = new AbortController();
  const release = clock.hold();
  const cancel = clock.after(deadlineMs, () => late.abort());
  try {
    const { report } = await runHelper<QuickCheckReport>(
      ownFile("./quick-check-process", import.meta.url),
      [path],
      { stopping: signal ? AbortSignal.any([late.signal, signal]) : late.signal, stderr: "ignore" },
    );
    return report ? verdictOf(report) : { verdict: "unfinished" };
  } finally {
    cancel();
    release();
  }
}

function verdictOf(report: QuickCheckReport): QuickCheck {
  if ("said" in report)
    return report.said === "ok"
      ? { verdict: "sound" }
      : { verdict: "damaged", finding: report.said.replaceAll(/\s+/g, " ") };
  // A process that could not read says nothing about the file.
  return /^SQLITE_(CORRUPT|NOTADB)/.test(report.code)
    ? { verdict: "damaged", finding: report.code }
    : { verdict: "unfinished" };
}
