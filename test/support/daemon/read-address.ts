import type { ChildProcess } from "node:child_process";

/** The address of the dashboard, which a daemon prints when it serves. Reads on, so that its log never blocks or breaks. */
export function readAddress(daemon: ChildProcess): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    const read = (chunk: Buffer) => {
      text += String(chunk);
      const address = /dashboard: ([^\s"]+)/.exec(text)?.[1];
      if (!address) return;
      daemon.stderr?.off("data", read).resume();
      resolve(address);
    };
    daemon.stderr?.on("data", read);
    daemon.stderr?.once("close", () => reject(new Error(`the daemon did not start: ${text}`)));
  });
}
