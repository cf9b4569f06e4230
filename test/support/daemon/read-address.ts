import type { ChildProcess } from "node:child_process";

/** The address of the dashboard, which a daemon prints when it serves. */
export async function readAddress(daemon: ChildProcess): Promise<string> {
  let text = "";
  for await (const chunk of daemon.stderr ?? []) {
    text += String(chunk);
    const address = /dashboard: ([^\s"]+)/.exec(text)?.[1];
    if (address) {
      daemon.stderr?.resume();
      return address;
    }
  }
  throw new Error(`the daemon did not start: ${text}`);
}
