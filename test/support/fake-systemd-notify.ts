import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A fake `systemd-notify` program that records its arguments. */
export function fakeSystemdNotify(folder: string): { env: Record<string, string>; messages(): string[] } {
  const program = join(folder, "bin", "systemd-notify");
  mkdirSync(join(folder, "bin"));
  writeFileSync(program, '#!/bin/sh\necho "$*" >> "$0.log"\n');
  chmodSync(program, 0o755);
  const env = { NOTIFY_SOCKET: join(folder, "notify"), PATH: `${join(folder, "bin")}:${process.env.PATH}` };
  const log = `${program}.log`;
  return { env, messages: () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []) };
}
