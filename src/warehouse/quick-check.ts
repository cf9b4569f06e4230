import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Clock } from "../runtime/clock.ts";

/** `unfinished`: no damage was found before the time was up. */
export type QuickCheck =
  | { readonly verdict: "sound" | "unfinished" }
  | { readonly verdict: "damaged"; readonly finding: string };

/** Reads the whole structure of the file, beside any writer, for at most `deadlineMs`: a large file takes minutes. */
export async function quickCheck(
  path: string,
  { clock, deadlineMs }: { clock: Clock; deadlineMs: number },
): Promise<QuickCheck> {
  const file = import.meta.url.endsWith(".ts") ? "./quick-check-process.ts" : "./quick-check-process.js";
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), path], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let isLate = false;
  const release = clock.hold();
  const cancel = clock.after(deadlineMs, () => {
    isLate = true;
    child.kill("SIGKILL");
  });
  try {
    const [said, complaint] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close"),
    ]);
    if (isLate) return { verdict: "unfinished" };
    if (said === "ok") return { verdict: "sound" };
    const code = /SQLITE_\w+/.exec(complaint)?.[0] ?? "the check failed";
    return { verdict: "damaged", finding: said.replaceAll(/\s+/g, " ") || code };
  } finally {
    cancel();
    release();
  }
}
