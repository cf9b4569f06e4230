import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Stands in for systemd's program: writes down what it is told. */
export function serviceManager(folder: string): { env: Record<string, string>; told(): string[] } {
  const program = join(folder, "bin", "systemd-notify");
  mkdirSync(join(folder, "bin"));
  writeFileSync(program, '#!/bin/sh\necho "$*" >> "$0.log"\n');
  chmodSync(program, 0o755);
  const env = { NOTIFY_SOCKET: join(folder, "notify"), PATH: `${join(folder, "bin")}:${process.env.PATH}` };
  const log = `${program}.log`;
  return { env, told: () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []) };
}
