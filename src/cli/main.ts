#!/usr/bin/env node
// Check the version before any other import: native modules crash an older Node.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 12)) {
  process.stderr.write(
    `mds-sync: Node ${process.versions.node} is too old: use Node 22.12 or newer (inside a clone, ./mds-sync uses its own Node)\n`,
  );
  process.exit(2);
}
const args = process.argv.slice(2);
const { setFlagsFromString } = process.getBuiltinModule("node:v8");
// The threads of the program are busy with their own work: helping each other to collect garbage costs more than it saves.
setFlagsFromString("--no-parallel-scavenge");
// A daemon is mostly idle, and a backfill waits for its threads: neither needs the 128 MiB that V8 takes for short-lived objects once
// it has been busy, nor a heap that grows to twice of what is in use before garbage is collected.
if (args[0] === "run" || args[0] === "backfill")
  for (const flag of ["--semi-space-growth-factor=1", "--heap-growing-percent=30"]) setFlagsFromString(flag);
// Print it here, because loading the rest of the program may take seconds.
if (args[0] === "run" && args.includes("--demo")) process.stderr.write("demo: starting the simulator …\n");
const { main } = await import("./program.ts");
process.exitCode = await main(args);

export {};
