import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Clock } from "../runtime/clock.ts";

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
  const file = import.meta.url.endsWith(".ts") ? "./quick-check-process.ts" : "./quick-check-process.js";
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), path], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let isLate = false;
  const release = clock.hold();
  const end = () => {
    isLate = true;
    child.kill("SIGKILL");
  };
  const cancel = clock.after(deadlineMs, end);
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) end();
  try {
    const [said, complaint] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close"),
    ]);
    if (isLate) return { verdict: "unfinished" };
    if (said === "ok") return { verdict: "sound" };
    const finding = said.replaceAll(/\s+/g, " ") || /SQLITE_(CORRUPT\w*|NOTADB)/.exec(complaint)?.[0];
    // A process that was killed, or could not read, says nothing about the file.
    return finding ? { verdict: "damaged", finding } : { verdict: "unfinished" };
  } finally {
    cancel();
    signal?.removeEventListener("abort", end);
    release();
  }
}
