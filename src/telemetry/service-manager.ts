import { spawn } from "node:child_process";

/**
 * Tells systemd how the daemon stands, where it runs under systemd. Node cannot speak to its socket, so systemd's own
 * little program does; that it is missing or fails is nobody's trouble.
 */
export function notifyServiceManager(message: string, env: NodeJS.ProcessEnv = process.env): void {
  if (!env.NOTIFY_SOCKET) return;
  const { NOTIFY_SOCKET, PATH = "/usr/bin:/bin" } = env;
  spawn("systemd-notify", [message], { stdio: "ignore", env: { NOTIFY_SOCKET, PATH } })
    .on("error", () => {})
    .unref();
}
